"""Data-parallel SGD whose gradients travel as one bit a value, with error feedback.

After Seide, Fu, Droppo, Li, Yu: "1-bit stochastic gradient descent and its application to
data-parallel distributed training of speech DNNs", Interspeech 2014. Serves any PyTorch model.
Needs torch only; where numba is installed, its loops quantize on the CPU.

    quantize    the method's definition: bits, levels, residual
    kernels     which code does it on which device
    codec       how a matrix's rows travel: float32, or one bit a value
    stripes     which worker owns which rows
    transport   moving messages between workers
    exchange    one step of all workers together
    replicas    proof that all workers hold the same bits
"""

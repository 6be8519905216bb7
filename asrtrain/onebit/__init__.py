"""Data-parallel SGD whose gradients travel as one bit a value, with error feedback.

After Seide, Fu, Droppo, Li, Yu: "1-bit stochastic gradient descent and its application to
data-parallel distributed training of speech DNNs", Interspeech 2014. Serves any PyTorch model.
Needs torch only; where numba is installed, its loops quantize on the CPU.

    quantize        the method's definition: bits, levels, residual
    kernels         which code does it on which device
    cpu_loops       its loops for the CPU, compiled by numba
    triton_kernels  its programs for a GPU, in Triton
    config          settings of the exchange
    codec           how a matrix's rows travel: float32, bfloat16, or a few bits a value
    stripes         which worker owns which rows
    transport       moving messages between workers
    bucket          the exchange of some of the parameters
    exchange        one step of all workers together
    background      the thread in which buckets travel during back-propagation
    ddp             the exchange as a hook of torch's DistributedDataParallel
    powersgd        torch's low-rank compression, for comparison
    replicas        proof that all workers hold the same bits
"""

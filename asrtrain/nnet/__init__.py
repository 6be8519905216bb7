"""The DNN senone classifier: its layers, its files, and the log-likelihoods it gives."""

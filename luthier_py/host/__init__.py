"""What stands under a program: HIP, hiprtc, HSA and KFD, each with its C and its Python, and the worker behind them."""

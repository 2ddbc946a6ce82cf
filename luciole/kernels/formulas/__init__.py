"""What a number becomes, written once and read as LLVM's instructions and as C99."""

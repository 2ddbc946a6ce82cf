"""Kernels of layers of learned levels: xnor-popcount on packed bits.

A value is a sum of signed basis elements, one sign for each bit plane (LQ-Nets, Zhang et al. 2018,
section 3), so that a product of rows is a sum over pairs of planes, each an xnor-popcount times the
product of both elements.
"""

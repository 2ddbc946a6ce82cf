"""Cells and steps that recurrent layers share."""

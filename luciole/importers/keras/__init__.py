"""Keras models and SavedModels."""

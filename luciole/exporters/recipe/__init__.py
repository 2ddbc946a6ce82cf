"""ONE's model recipes (protobuf text). They hold less than a model, so ``save`` does not write
them: ``to_recipe`` says what is lost.
"""

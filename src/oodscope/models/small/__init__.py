from oodscope.models.small.cnn import small_cnn

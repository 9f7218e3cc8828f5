"""Tables, figures and wording as data without pixels, and one writer per format."""

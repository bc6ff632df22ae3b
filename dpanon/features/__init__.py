"""What is measured in a recording: f0, fbank, x-vector, and the teachers of the content features."""

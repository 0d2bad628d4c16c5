"""What a class is given to learn: courses become plans of its learners; how far they are, and who asks for help."""

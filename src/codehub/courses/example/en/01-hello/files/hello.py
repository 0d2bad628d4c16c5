# Write your program below this line.

# Solves the practice: run by `sh` in the home of a workspace. Never sent to anybody.
echo 'print("Hello")' > hello.py

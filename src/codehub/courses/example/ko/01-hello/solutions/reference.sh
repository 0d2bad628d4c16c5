# 실습의 모범 답안: 워크스페이스의 홈에서 `sh`로 실행됩니다. 누구에게도 전송되지 않습니다.
echo 'print("Hello")' > hello.py

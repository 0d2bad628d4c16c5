number = int(input("몇 단? "))
# 여기에 for 반복문을 쓰세요. 한 번 돌 때마다 한 줄씩 출력해요.

def total(price, count):
    return 0  # 미완성: count개를 사면 얼마인가요?


# 여기에 delivery_fee(amount)를 쓰세요.


# 여기에 receipt_line(name, price, count)를 쓰세요.


# 함수를 시험하는 줄은 여기 아래에, 들여 쓰지 말고 쓰세요.
print(total(2000, 3))

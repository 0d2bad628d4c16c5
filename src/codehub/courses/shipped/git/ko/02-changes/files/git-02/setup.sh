# 이번 실습에 쓸 저장소를 만듭니다. 이 스크립트 옆에 shop 폴더가 생깁니다.
#   sh ~/git-02/setup.sh          처음 한 번
#   sh ~/git-02/setup.sh again    다시 시작. 지금까지 한 것은 shop-old-1, shop-old-2 …로 남겨 둡니다.
set -eu
cd "$(dirname "$0")"

if ! command -v git >/dev/null 2>&1; then
  echo "git이 설치되어 있지 않습니다. 선생님이나 관리자에게 알려 주세요."
  exit 1
fi
if [ -e shop ]; then
  if [ "${1:-}" != again ]; then
    echo "shop 폴더가 이미 있어서 아무것도 바꾸지 않았습니다. 다시 시작하려면: sh ~/git-02/setup.sh again"
    exit 1
  fi
  n=1
  while [ -e "shop-old-$n" ]; do n=$((n + 1)); done
  mv shop "shop-old-$n"
  echo "지금까지 하던 폴더는 shop-old-$n(으)로 옮겼습니다."
fi

# 아래 커밋은 은지가 만든 것으로 합니다. 여러분의 Git 설정은 쓰지 않습니다.
settings=$(git config user.name && git config user.email) || settings=
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=은지 GIT_AUTHOR_EMAIL=eunji@example.com
export GIT_COMMITTER_NAME=은지 GIT_COMMITTER_EMAIL=eunji@example.com

git init -q -b main shop
cd shop
printf '녹차 4000원\n홍차 3600원\n박하차 4200원\n' > prices.txt
git add prices.txt
git commit -q -m "가격표 추가"
printf '월요일~금요일 9시~18시\n토요일 10시~14시\n' > hours.txt
git add hours.txt
git commit -q -m "영업시간 추가"
printf '녹차 2000원\n홍차 1800원\n박하차 2100원\n' > prices.txt
git add prices.txt
git commit -q -m "모든 가격을 반값으로"
printf '은지네 찻집\n항구길 12\n' > address.txt
git add address.txt
git commit -q -m "주소 추가"

# 은지가 두고 간 책상 위 상태입니다.
printf '전화: 02-555-0134\n' >> address.txt
printf 'ㅓㅓㅓㅓㅓㅓㅓㅓㅓㅓㅏㅣ;;;;\n' > hours.txt
printf '계산대: 4711\n경보기: 0815\n' > passwords.txt
git add passwords.txt
printf '09:00 계산대 열림\n' > till.log

echo "준비되었습니다. cd ~/git-02/shop 한 다음 git status로 살펴보세요."
if [ -z "$settings" ]; then
  echo "Git이 아직 여러분의 이름을 모릅니다. 커밋하기 전에 알려 주세요."
  echo '  git config --global user.name "홍길동"'
  echo '  git config --global user.email "you@example.com"'
fi

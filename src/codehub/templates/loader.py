"""placeholder"""


class Templates: ...

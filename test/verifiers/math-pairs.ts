export type Pair = [truth: string, answer: string];

/** One pair a line, truth and answer parted by ` ~ `, in LaTeX as it stands. ASCII only: Bun escapes the rest. */
function table({ raw }: TemplateStringsArray): Pair[] {
  const lines = (raw[0] ?? "").split("\n").filter((line) => line.includes(" ~ "));
  return lines.map((line) => line.split(" ~ ").map((side) => side.trim()) as Pair);
}

export const EQUAL: Pair[] = [
  ...table`
    5 ~ \text{Answer: } 5
    5 ~ \text{The answer is 5}
    5 ~ \textcolor{red}{5}
    5 ~ \underline{5}
    5 ~ \Large 5
    314\text{ m^2} ~ {\text{314 m^2}}
    314\text{ m^2} ~ {314\text{ m^2}}
    6 ~ 6\ \mathrm{m\,s^{-1}}
    -5 ~ {-}5
    2516_8 ~ (2516)_8
    2516_8 ~ 2516_{\text{eight}}
    4:30\text{ p.m.} ~ 4{:}30\text{ pm}
    60^\circ ~ m\angle ABC = 60^\circ
    1234.50 ~ \$1{,}234.50
    6 ~ 6\ \text{m}\cdot\text{s}^{-1}
    1,2,3 ~ 1\text{, }2\text{, }3
    \mathbb{R} ~ \text{all real numbers}
    |x| ~ \abs{x}
    \arctan 2 ~ \operatorname{arctan} 2
    5 ~ 5
    5 ~ 5.0
    5 ~ 5.
    5 ~ +5
    -3 ~ -3
    007 ~ 7
    1234 ~ 1,234
    1,234,567 ~ 1234567
    10000 ~ 10{,}000
    10000 ~ 10\,000
    10000 ~ 10,\!000
    1000000 ~ 1 000 000
    \frac{1}{2} ~ 1/2
    \frac{1}{2} ~ 0.5
    \frac{1}{2} ~ .5
    \frac12 ~ \dfrac{1}{2}
    \frac{1}{2} ~ \tfrac12
    \frac{2}{4} ~ \frac{1}{2}
    \frac{-1}{2} ~ -\frac{1}{2}
    -\frac{1}{2} ~ \frac{1}{-2}
    \frac{1}{3} ~ 0.333333
    \frac{2}{3} ~ 0.666667
    \frac{1}{3} ~ 0.\overline{3}
    \frac{1}{6} ~ 0.1\overline{6}
    3\frac{1}{2} ~ \frac{7}{2}
    3\frac{1}{2} ~ 3.5
    3 \frac{1}{2} ~ 7/2
    3 1/2 ~ 3.5
    -3\frac{1}{2} ~ -3.5
    \sqrt2 ~ \sqrt{2}
    \sqrt{2} ~ 1.414214
    \sqrt{8} ~ 2\sqrt{2}
    \frac{1}{\sqrt{2}} ~ \frac{\sqrt{2}}{2}
    \sqrt{12} ~ 2\sqrt3
    3\sqrt{2}+1 ~ 1+3\sqrt{2}
    \sqrt{3+2\sqrt{2}} ~ 1+\sqrt{2}
    \sqrt[3]{16} ~ 2\sqrt[3]{2}
    2^{1/2} ~ \sqrt{2}
    \pi ~ 3.141593
    2\pi ~ \pi\cdot2
    \frac{\pi}{6} ~ \pi/6
    12\pi ~ 12 \pi
    50\% ~ 50
    50\% ~ 0.5
    50\% ~ \frac{1}{2}
    12.5\% ~ 12.5\text{ percent}
    60^\circ ~ 60
    60^{\circ} ~ 60^\circ
    90 ~ 90\text{ degrees}
    \$12.50 ~ 12.5
    12 ~ \$12
    12 ~ 12\text{ dollars}
    5 ~ 5\text{ cm}
    5\text{ cm} ~ 5
    5\text{ cm} ~ 5\text{ centimeters}
    5\text{ cm} ~ 5\mathrm{~cm}
    10 ~ 10\text{ cm}^2
    10 ~ 10 \text{ square units}
    10 ~ 10 inches
    60 ~ 60 miles per hour
    12 ~ 12\text{ ways}
    4 ~ x=4
    4 ~ x = 4.
    x=4 ~ 4
    12 ~ m+n=12
    5 ~ AB = 5
    2x+1 ~ y=2x+1
    y=2x+1 ~ 2x+1
    f(x)=2x+1 ~ f(x) = 1+2x
    f(x)=2x+1 ~ 2x+1
    y=2x+1 ~ y-2x-1=0
    x^2+y^2=1 ~ y^2+x^2-1=0
    2x+2y=2 ~ x+y=1
    x+y=1 ~ 1=x+y
    (x+1)^2 ~ x^2+2x+1
    (x-1)(x+1) ~ x^2-1
    x^2-5x+6 ~ (x-2)(x-3)
    \frac{x^2-1}{x-1} ~ x+1
    \frac{x}{2} ~ 0.5x
    \frac{n(n+1)}{2} ~ \frac{n^2+n}{2}
    \sin^2 x+\cos^2 x ~ 1
    \sin 2x ~ 2\sin x\cos x
    \cos(2\theta) ~ 1-2\sin^2\theta
    \tan x ~ \frac{\sin x}{\cos x}
    \ln 8 ~ 3\ln 2
    \log_2 8 ~ 3
    \ln x^2 ~ 2\ln x
    e^{2x} ~ (e^x)^2
    e^{x+1} ~ e\cdot e^x
    \sqrt{xy} ~ \sqrt{x}\sqrt{y}
    2^{n+1} ~ 2\cdot 2^n
    a^2b ~ ba^2
    xy ~ yx
    \frac{a+b}{c} ~ \frac{a}{c}+\frac{b}{c}
    n! ~ n(n-1)!
    \binom{n}{2} ~ \frac{n(n-1)}{2}
    \binom{10}{3} ~ 120
    5! ~ 120
    2^{10} ~ 1024
    2^{2024}-1 ~ 2^{2024} - 1
    2^{100} ~ 4^{50}
    \frac{100!}{98!} ~ 9900
    3^{2018}-1 ~ 9^{1009}-1
    \sum_{k=1}^{10} k ~ 55
    1.5\times10^8 ~ 150000000
    1.5 \cdot 10^{8} ~ 1.5e8
    3\times 10^{-3} ~ 0.003
    2+3i ~ 3i+2
    (1+i)^2 ~ 2i
    \sqrt{-4} ~ 2i
    e^{i\pi} ~ -1
    \frac{1}{i} ~ -i
    (1,2) ~ (1, 2)
    (1,2) ~ \left(1,2\right)
    (\frac{1}{2},3) ~ (0.5,3)
    (x,y)=(1,2) ~ (1,2)
    (1,2) ~ (x,y)=(1,2)
    (1,2) ~ 1,2
    (1,2,3) ~ [1,2,3]
    (3, \frac{\pi}{2}) ~ \left( 3, \frac{\pi}{2} \right)
    (1,2),(3,4) ~ (3,4),(1,2)
    \{1,2,3\} ~ \{3,2,1\}
    \{1,2,3\} ~ 1,2,3
    1,2 ~ 2,1
    1,2 ~ 1\text{ and }2
    1,2 ~ x=1 or x=2
    1,2 ~ 1; 2
    \{5\} ~ 5
    -1,1 ~ \pm 1
    \pm 1 ~ 1,-1
    x=\pm 2 ~ \{2,-2\}
    1\pm\sqrt{2} ~ 1-\sqrt{2},1+\sqrt{2}
    \frac{1\pm\sqrt{5}}{2} ~ \frac{1-\sqrt{5}}{2}, \frac{1+\sqrt{5}}{2}
    \emptyset ~ \varnothing
    \emptyset ~ \{\}
    [1,2) ~ \left[1,2\right)
    (-\infty,3] ~ (-\infty, 3]
    (1,2) ~ 1<x<2
    1<x\le2 ~ (1,2]
    x>3 ~ (3,\infty)
    x>3 ~ 3<x
    x\geq 3 ~ 3\le x
    x\ge3 ~ x >= 3
    [2,5] ~ x\in[2,5]
    x\in[2,5] ~ 2\leq x\leq 5
    (-\infty,-1)\cup(1,\infty) ~ (-\infty, -1) \cup (1, +\infty)
    (-\infty,-1)\cup(1,\infty) ~ x<-1\text{ or }x>1
    \mathbb{R} ~ (-\infty,\infty)
    \{x \mid x>3\} ~ (3,\infty)
    2x<6 ~ x<3
    x\ne 0 ~ x \neq 0
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ~ \begin{bmatrix} 1 & 2 \\ 3 & 4 \end{bmatrix}
    \begin{pmatrix}1/2\\3\end{pmatrix} ~ \begin{pmatrix} 0.5 \\ 3 \end{pmatrix}
    C ~ \text{C}
    C ~ (C)
    C ~ \text{(C)}
    C ~ \textbf{(C)}
    (C) ~ C
    C ~ C.
    C ~ \textbf{(C)}\ 12
    12 ~ \textbf{(C)}\ 12
    \text{Yes} ~ yes
    \text{Tuesday} ~ Tuesday
    \text{not possible} ~ Not possible
    2516_8 ~ 2516_{8}
    2516_8 ~ 2516
    3:4 ~ \frac{3}{4}
    3:4 ~ 6:8
    \boxed{7} ~ 7
    \displaystyle\frac{3}{4} ~ \frac{3}{4}
    2 \sqrt{13} ~ 2\sqrt{13}
    $\frac{3}{4}$ ~ \frac{3}{4}
    \(\frac{3}{4}\) ~ \frac{3}{4}
    \lfloor 3.7 \rfloor ~ 3
    |{-3}| ~ 3
    \frac{\sqrt{6}-\sqrt{2}}{4} ~ \sin 15^\circ
    x^{1/3} ~ \sqrt[3]{x}
    \frac{1}{x}+\frac{1}{y} ~ \frac{x+y}{xy}
    \arctan 1 ~ \frac{\pi}{4}
  `,
  ["\\pi", "π"],
  ["2\\sqrt{3}", "2√3"],
  ["60", "60°"],
  ["x \\le 3", "x ≤ 3"],
  ["6", "2×3"],
  ["-3", "−3"],
  ["x^2", "x²"],
];

export const NOT_EQUAL: Pair[] = [
  ...table`
    1 ~ 10
    10 ~ 1
    5 ~ -5
    5 ~ 6
    12 ~ 1,2
    1,2 ~ 12
    0 ~ 0.0000001
    0 ~ e^{-50}
    0.000001 ~ 0.000002
    1/3 ~ 0.333
    1/3 ~ 0.33
    2/3 ~ 0.666
    1/2 ~ 2/1
    \frac{1}{2} ~ \frac{1}{3}
    \frac{1}{2} ~ 12
    \frac{12}{5} ~ \frac{1}{25}
    3\frac{1}{2} ~ \frac{3}{2}
    2\pi ~ 6.28
    \pi ~ 3.14
    \pi ~ \frac{22}{7}
    \sqrt{2} ~ 1.41
    \sqrt{2} ~ \sqrt{3}
    \sqrt{2} ~ 2
    2\sqrt{3} ~ 3\sqrt{2}
    \sqrt[3]{2} ~ 3\sqrt{2}
    2^{2024} ~ 2^{2024}-1
    2^{100} ~ 2^{100}+1
    10^{20} ~ 10^{20}+1
    100! ~ 100!+1
    2^{n} ~ n^2
    x+1 ~ x-1
    x+1 ~ y+1
    x ~ -x
    x ~ |x|
    x ~ \sqrt{x^2}
    x^2 ~ x^3
    2x ~ x^2
    (x+1)^2 ~ x^2+1
    x^2+2x+1 ~ x^2+2x+2
    \sin x ~ \cos x
    \sin^2 x ~ \sin x^2
    \sin 2x ~ 2\sin x
    e^{2x} ~ e^{x^2}
    \ln 2x ~ 2\ln x
    \frac{a}{b} ~ \frac{b}{a}
    a-b ~ b-a
    \frac{x+1}{2} ~ x+\frac{1}{2}
    (1,2) ~ (2,1)
    (1,2) ~ (1,3)
    (1,2) ~ (1,2,3)
    (1,2) ~ [1,2]
    (1,2) ~ \{1,2\}
    (1,2) ~ 2,1
    [1,2) ~ (1,2]
    [1,2] ~ \{1,2\}
    (1,2,3) ~ (3,2,1)
    (1,2),(3,4) ~ (1,3),(2,4)
    \{1,2\} ~ \{1,3\}
    \{1,2\} ~ \{1,2,3\}
    \{1,2,3\} ~ \{1,2\}
    1,2,3 ~ 1,2
    1 ~ 1,2
    1 ~ 1\text{ or }2
    1,2 ~ 1
    \pm 1 ~ 1
    1 ~ \pm 1
    x=1 ~ y=1
    x=1,y=2 ~ x=2,y=1
    y=2x+1 ~ y=2x-1
    y=2x+1 ~ 2x
    x^2+y^2=1 ~ 1
    x^2+y^2=1 ~ x^2-y^2=1
    x<3 ~ x>3
    x<3 ~ x\le3
    1<x<2 ~ 1\le x\le 2
    x>3 ~ (-\infty,3)
    x>3 ~ [3,\infty)
    x<3 ~ -x<-3
    x \ne 0 ~ x=0
    (-\infty,-1)\cup(1,\infty) ~ (-\infty,-1]\cup(1,\infty)
    (-\infty,-1)\cup(1,\infty) ~ (1,\infty)
    \infty ~ -\infty
    \infty ~ 10^{100}
    \emptyset ~ 0
    \emptyset ~ \{0\}
    \begin{pmatrix}1&2\\3&4\end{pmatrix} ~ \begin{pmatrix}1&3\\2&4\end{pmatrix}
    \begin{pmatrix}1\\2\end{pmatrix} ~ \begin{pmatrix}1&2\end{pmatrix}
    C ~ B
    C ~ \text{(B)}
    C ~ BC
    C ~ \textbf{(B)}\ 12
    12 ~ \textbf{(C)}\ 21
    \text{Yes} ~ \text{No}
    \text{odd} ~ \text{even}
    listen ~ silent
    AB ~ BA
    5\text{ cm} ~ 5\text{ m}
    5\text{ hours} ~ 5\text{ minutes}
    50\% ~ 5
    50\% ~ 0.05
    2516_8 ~ 2516_7
    1010_2 ~ 10
    3:4 ~ 4:3
    2+3i ~ 2-3i
    i ~ -i
    i ~ 1
    2i ~ 2
    1.5\times10^8 ~ 1.5\times10^7
    e ~ 2.718
    \binom{10}{3} ~ \binom{10}{4}
    \lfloor x \rfloor ~ x
    60^\circ ~ 30^\circ
    12 ~ twelve
    7 ~ ?
    5 ~ \text{}
    5 ~ 5=6
    \int_0^1 x dx ~ 2
    4 ~ \frac{4}{0}
    0 ~ \frac{0}{0}
  `,
];

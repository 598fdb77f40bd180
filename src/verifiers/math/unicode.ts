const SIGNS: Record<string, string> = {
  "×": "\\times ",
  "·": "\\cdot ",
  "∙": "\\cdot ",
  "⋅": "\\cdot ",
  "÷": "/",
  "⁄": "/",
  "∕": "/",
  "−": "-",
  "–": "-",
  "√": "\\sqrt ",
  "≤": "\\le ",
  "≥": "\\ge ",
  "≠": "\\ne ",
  "≈": "\\approx ",
  "∞": "\\infty ",
  "°": "^\\circ ",
  "∪": "\\cup ",
  "∩": "\\cap ",
  "∈": "\\in ",
  "±": "\\pm ",
  "∅": "\\emptyset ",
  α: "\\alpha ",
  β: "\\beta ",
  γ: "\\gamma ",
  δ: "\\delta ",
  θ: "\\theta ",
  λ: "\\lambda ",
  μ: "\\mu ",
  π: "\\pi ",
  ρ: "\\rho ",
  σ: "\\sigma ",
  τ: "\\tau ",
  φ: "\\phi ",
  ω: "\\omega ",
  Δ: "\\Delta ",
  Ω: "\\Omega ",
};
const SIGN = new RegExp(`[${Object.keys(SIGNS).join("")}]`, "gu");

const plainly = (text: string) => text.normalize("NFKC");

/** What is written with signs of Unicode as LaTeX writes it: `x²`, `¾`, `√12`, `π`, full-width digits. */
export function withoutSigns(text: string): string {
  return text
    .replace(/[！-～]/g, plainly)
    .replace(/[⁺⁻]?[⁰¹²³⁴-⁹]+/g, (power) => `^{${plainly(power)}}`)
    .replace(/[₀-₉]+/g, (index) => `_{${plainly(index)}}`)
    .replace(/[¼-¾⅐-⅞]/g, (part) => plainly(part).replace(/(\d+)⁄(\d+)/, "\\frac{$1}{$2}"))
    .replace(/√\s*(\d+)/g, "\\sqrt{$1}")
    .replace(SIGN, (sign) => SIGNS[sign] ?? sign);
}

/** Measures by every spelling. Units are never converted, so each scale has its own name. */
const SPELLINGS: Record<string, string> = {
  mm: "mm millimeter millimetre",
  cm: "cm centimeter centimetre",
  dm: "dm decimeter decimetre",
  m: "m meter metre",
  km: "km kilometer kilometre",
  in: "in inch inche",
  ft: "ft foot feet",
  yd: "yd yard",
  mi: "mi mile",
  mg: "mg milligram",
  g: "g gram gramme",
  kg: "kg kilogram kilo",
  lb: "lb pound",
  oz: "oz ounce",
  ton: "ton tonne",
  ml: "ml milliliter millilitre",
  l: "l liter litre",
  gal: "gal gallon",
  qt: "qt quart",
  pt: "pint",
  cup: "cup",
  ms: "ms millisecond",
  s: "s sec second",
  min: "min minute",
  h: "h hr hour",
  day: "day",
  week: "week",
  month: "month",
  year: "yr year",
  decade: "decade",
  century: "century centurie",
  am: "am",
  pm: "pm",
  cent: "cent",
  penny: "penny pennie",
  nickel: "nickel",
  dime: "dime",
  dollar: "dollar usd buck",
  euro: "euro eur",
  yuan: "yuan rmb",
  yen: "yen",
  rupee: "rupee",
  degree: "degree deg",
  degreeC: "celsius",
  degreeF: "fahrenheit",
  k: "kelvin",
  rad: "radian rad",
  n: "n newton",
  j: "j joule",
  w: "w watt",
  kw: "kw kilowatt",
  v: "v volt",
  ohm: "ohm",
  hz: "hz hertz",
  pa: "pa pascal",
  mol: "mol mole",
  bit: "bit",
  byte: "byte",
  unit: "unit",
  acre: "acre",
  hectare: "hectare ha",
};

const MEASURES = new Map(
  Object.entries(SPELLINGS).flatMap(([unit, names]) =>
    names.split(" ").map((name) => [name, unit]),
  ),
);
const SPEEDS = new Map([
  ["mph", "mi/h"],
  ["kph", "km/h"],
  ["kmh", "km/h"],
  ["mpg", "mi/gal"],
]);

/** The measure that a word names and its power, or null. */
export function measureOf(word: string): [measure: string | null, power: number] {
  const squared = /^sq([a-z]{2,})$/.exec(word)?.[1];
  if (squared !== undefined) {
    const [measure] = measureOf(squared);
    if (measure !== null) return [measure, 2];
  }
  return [MEASURES.get(word) ?? SPEEDS.get(word) ?? MEASURES.get(singular(word)) ?? null, 1];
}

const NOUNS = new Set(
  (
    "way point person people man men woman women child children student boy girl integer number element member term " +
    "digit factor divisor multiple prime solution root value pair triple tuple triangle rectangle circle polygon side " +
    "edge vertex vertice face angle diagonal line segment region area square cube tile block box boxe row column page " +
    "book coin ball marble card game apple orange egg cookie candy candie piece slice cake pizza bottle ticket car bus " +
    "buse dog cat bird fish tree flower house room chair table student teacher friend player team match race lap step " +
    "trip job task item object thing set subset sequence arrangement combination permutation outcome possibility " +
    "possibilitie choice code word letter path route right isosceles distinct different possible " +
    "real complex rational whole ordered unordered consecutive bag pencil pen sticker stamp toy gift " +
    "question problem test score mark hit stone seed shirt sock shoe hat dress ribbon rope bead button key lock light"
  ).split(" "),
);

/** Words that change the number before them, or say another thing of it. */
const TELLING = new Set(
  (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen " +
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion trillion " +
    "dozen score half halve third fourth fifth sixth seventh eighth ninth tenth quarter percent pct plus minus " +
    "time divided multiplied by over squared cubed root sqrt power log factorial choose mod modulo remainder and or " +
    "nor not no none never without unless except but if when while since for because more less most least fewer " +
    "greater bigger smaller than about around approximately roughly nearly almost at under above below between to from " +
    "until alternatively maybe perhaps possibly probably either neither else otherwise instead rather wrong false " +
    "incorrect correct true yes is are was be equal answer guess hedge also another both other some " +
    "every can could may might would should with as like ignore grader reward"
  ).split(" "),
);

/** In a set of words: a truth says what it counts in its own words. */
export const EVERY_WORD = "*";

/** Whether a word may name what a number counts: one of the usual, one of the question's, or a plural. */
export function isNoun(word: string, words: ReadonlySet<string>): boolean {
  const one = singular(word);
  if (TELLING.has(word) || TELLING.has(one)) return false;
  if (words.has(EVERY_WORD)) return true;
  if (NOUNS.has(one) || words.has(word) || words.has(one)) return true;
  return word.length >= 5 && /[^sui]s$/.test(word) && !/(?:th|rd|nd)s$/.test(word);
}

export function singular(word: string): string {
  return word.length > 2 && word.endsWith("s") ? word.slice(0, -1) : word;
}

/** Whether a word behind a number, without `\text`, is a word and no product of variables. */
export function isPlainWord(word: string): boolean {
  const lower = word.toLowerCase();
  if (word.length >= 4) return true;
  return (
    word.length >= 2 &&
    (measureOf(lower)[0] !== null || TELLING.has(lower) || NOUNS.has(singular(lower)))
  );
}

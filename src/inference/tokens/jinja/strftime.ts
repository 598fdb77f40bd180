import { TemplateError } from "./values.ts";

const MONTHS =
  "January February March April May June July August September October November December";
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday";
const DIRECTIVE = /%([-_0^#]?)(.)/gs;

/** `date.strftime(format)` of Python under Linux, in English and in this machine's time zone. */
export function strftime(date: Date, format: string): string {
  return format.replace(DIRECTIVE, (whole, flag: string, letter: string) => {
    const [text, width, fill] = directive(date, letter) ?? [whole, 0, ""];
    if (width === 0) return flag === "^" ? text.toUpperCase() : text;
    if (flag === "-") return text;
    return text.padStart(width, flag === "_" ? " " : flag === "0" ? "0" : fill);
  });
}

type Shown = [text: string, width: number, fill: string];

function directive(date: Date, letter: string): Shown | null {
  const two = (value: number, fill = "0"): Shown => [String(value), 2, fill];
  const part = (format: string): Shown => [strftime(date, format), 0, ""];
  const word = (text: string): Shown => [text, 0, ""];
  const month = MONTHS.split(" ")[date.getMonth()] as string;
  const day = DAYS.split(" ")[date.getDay()] as string;
  const hours = date.getHours();
  const yearDay = dayOfYear(date);
  const monday = (date.getDay() + 6) % 7;
  switch (letter) {
    case "Y":
      return [String(date.getFullYear()), 4, "0"];
    case "y":
      return two(date.getFullYear() % 100);
    case "C":
      return two(Math.floor(date.getFullYear() / 100));
    case "m":
      return two(date.getMonth() + 1);
    case "d":
      return two(date.getDate());
    case "e":
      return two(date.getDate(), " ");
    case "H":
      return two(hours);
    case "k":
      return two(hours, " ");
    case "I":
      return two(hours % 12 || 12);
    case "l":
      return two(hours % 12 || 12, " ");
    case "M":
      return two(date.getMinutes());
    case "S":
      return two(date.getSeconds());
    case "f":
      return word(`${String(date.getMilliseconds()).padStart(3, "0")}000`);
    case "j":
      return [String(yearDay + 1), 3, "0"];
    case "U":
      return two(Math.floor((yearDay + 7 - date.getDay()) / 7));
    case "W":
      return two(Math.floor((yearDay + 7 - monday) / 7));
    case "w":
      return word(String(date.getDay()));
    case "u":
      return word(String(monday + 1));
    case "B":
      return word(month);
    case "b":
    case "h":
      return word(month.slice(0, 3));
    case "A":
      return word(day);
    case "a":
      return word(day.slice(0, 3));
    case "p":
      return word(hours < 12 ? "AM" : "PM");
    case "P":
      return word(hours < 12 ? "am" : "pm");
    case "s":
      return word(String(Math.floor(date.getTime() / 1000)));
    case "G":
      return [String(isoWeek(date).year), 4, "0"];
    case "V":
      return two(isoWeek(date).week);
    case "F":
      return part("%Y-%m-%d");
    case "D":
    case "x":
      return part("%m/%d/%y");
    case "T":
    case "X":
      return part("%H:%M:%S");
    case "R":
      return part("%H:%M");
    case "r":
      return part("%I:%M:%S %p");
    case "c":
      return part("%a %b %e %H:%M:%S %Y");
    // A time without a zone names none.
    case "z":
    case "Z":
      return word("");
    case "n":
      return word("\n");
    case "t":
      return word("\t");
    case "%":
      return word("%");
    case "E":
    case "O":
      throw new TemplateError(`strftime_now: the directive %${letter} is not supported`);
  }
  return null;
}

const DAY_MS = 86_400_000;

function dayOfYear(date: Date): number {
  const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()];
  return Math.round((Date.UTC(year, month, day) - Date.UTC(year, 0, 1)) / DAY_MS);
}

/** The week whose Thursday is in the year. */
function isoWeek(date: Date): { year: number; week: number } {
  const [year, month, day] = [date.getFullYear(), date.getMonth(), date.getDate()];
  const weekday = (date.getDay() + 6) % 7;
  const thursday = new Date(Date.UTC(year, month, day - weekday + 3));
  const days = (thursday.getTime() - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / DAY_MS;
  return { year: thursday.getUTCFullYear(), week: Math.floor(days / 7) + 1 };
}

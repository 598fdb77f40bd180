/**
 * What the detector of languages lacks: Nepali and Swahili, told by their commonest words and endings, and the
 * letters that a language of the Cyrillic, Arabic or Bengali script does not have.
 */

/** Words by themselves; a word that begins with `-` is an ending. */
const DEVANAGARI: Record<string, string> = {
  hi:
    "है हैं में के की का को से और यह वह पर ने नहीं भी कि तो हम आप था थी थे इस उस इन उन जो लिए कर हो ही या अपने अपनी " +
    "गया गई होता होती होते करें करना सकते सकता सकती रहा रही रहे वाले वाली साथ एवं क्या कोई किसी मैं मुझे हमें आपका आपकी आपके हमारा मेरा उनका इसका उसका",
  mr:
    "आहे आहेत आणि नाही नाहीत हे हा ही तो ती त्या व मी आम्ही तुम्ही केले केला केली होते होता होती असे असते असतो करा मध्ये म्हणून पण किंवा " +
    "त्याचे त्याच्या आपण आपल्या मला खूप झाले झाला झाली येथे काही सर्व -च्या -ची -चे -चा -मध्ये -साठी -तील -ांना -ाला -ाने -ून -णे -ावे -ात",
  ne:
    "छ छन् छैन छैनन् छु छौं हो होइन हुन्छ हुन् हुनेछ थियो थिए भयो भएको भएका भने गर्न गर्नु गर्छ गरेको गरी यो त्यो यी यस उनी उनले मेरो पनि " +
    "लागि तथा हामी हाम्रो तपाईं तपाईंको अनि मात्र धेरै जस्तै कुनै हरू एउटा अर्को साथै किनभने त्यसैले अथवा सक्छ सकिन्छ म " +
    "-हरू -हरु -लाई -को -मा -ले -बाट -सँग -नुहोस् -नुहोस -न्छ -न्छन् -ेको -ेका -भयो -न्छौं -उने",
};

const SWAHILI = new Set(
  (
    "na ya wa kwa ni katika la za cha vya hii huu hiyo huo hizi hizo hivi hivyo kama lakini pia au sana kuwa ambayo ambao ambazo " +
    "hakuna yake yangu yako yetu wake wangu wako wetu wao yao si sio ili bila baada kabla kila mtu watu siku moja mbili tu bado " +
    "hadi tangu karibu ndani nje juu chini zaidi hapa hapo pale ndiyo hapana mimi wewe yeye sisi nini nani wapi lini vipi gani " +
    "hata kisha halafu kwamba kuna ana wana ina zina una nina hana ilikuwa alikuwa basi sasa leo kesho jana kupitia kuhusu pamoja " +
    "hasa tena kwani sababu samahani mfano"
  ).split(" "),
);
const SWAHILI_SHAPE =
  /^(?:ku|ana|wana|ina|ili|una|nina|tuna|ali|wali|ata|wata|haku|hawa|hau|ume|ime|ame|wame|zime|uta|ita|m[bpw]|ki|vi|wa|u[a-z]{3})|nd|mb|ng|nj|nz|(?:wa|isha|ika|ana)$/;

const ALPHABETS: Record<string, RegExp> = {
  ar: /^[ء-غف-ٟٱ]$/,
  fa: /^[ءآأؤئابپتثجچحخدذرزژسشصضطظعغفقکگكلمنوهةيیۀً-ٟ]$/,
  ur: /^[ءآأؤئابپتٹثجچحخدڈذرڑزژسشصضطظعغفقکگلمنںوهہھةۃییےۓۂً-ٟ]$/,
  be: /^[абвгдеёжзійклмнопрстуўфхцчшыьэюяґ]$/i,
  bg: /^[абвгдежзийклмнопрстуфхцчшщъьюяѝ]$/i,
  ru: /^[абвгдеёжзийклмнопрстуфхцчшщъыьэюя]$/i,
  sr: /^[абвгдђежзијклљмнњопрстћуфхцчџш]$/i,
  uk: /^[абвгґдеєжзиіїйклмнопрстуфхцчшщьюя]$/i,
  bn: /^[ঀ-৮]$/,
};
/** A name or a quotation may have others. */
const MAX_FOREIGN_LETTERS = 0.02;

/** The language of most of the common words; null where they decide nothing, or the text is in another script. */
export function devanagariLanguage(text: string): string | null {
  const words = text.match(/[\p{Script=Devanagari}\p{M}\u200c\u200d]+/gu) ?? [];
  if (words.join("").length * 2 < (text.match(/[\p{L}\p{M}]/gu)?.length ?? 0)) return null;
  const [first, second] = MARKS.map(({ language, whole, endings }) => ({
    language,
    found: words.filter((word) => whole.has(word) || endings.some((end) => hasEnd(word, end)))
      .length,
  })).sort((a, b) => b.found - a.found);
  return first && second && first.found > second.found ? first.language : null;
}

const MARKS = Object.entries(DEVANAGARI).map(([language, text]) => {
  const marks = text.split(" ");
  return {
    language,
    whole: new Set(marks.filter((mark) => !mark.startsWith("-"))),
    endings: marks.filter((mark) => mark.startsWith("-")).map((mark) => mark.slice(1)),
  };
});

function hasEnd(word: string, end: string): boolean {
  return word.length > end.length + 1 && word.endsWith(end);
}

/** Nearly all words of Swahili end in a vowel, none has a double consonant, and a few words make up a third of it. */
export function isSwahili(text: string): boolean {
  const words = text.toLowerCase().match(/\p{L}+/gu) ?? [];
  if (words.length < 3) return false;
  const share = (of: (word: string) => boolean) => words.filter(of).length / words.length;
  if (share((word) => /[aeiou]$/.test(word)) < 0.75) return false;
  if (share((word) => /[^a-z]|[qx]|c(?!h)|([bcdfgjklprstvz])\1/.test(word)) > 0.1) return false;
  const common = share((word) => SWAHILI.has(word));
  const shaped = share((word) => SWAHILI_SHAPE.test(word));
  return common + shaped / 2 >= 0.3 && (common >= 0.14 || shaped >= 0.5);
}

/** Whether a text has letters of the language's script that the language does not write. */
export function foreignTo(language: string, text: string): boolean {
  const alphabet = ALPHABETS[language];
  if (!alphabet) return false;
  const letters = text.match(/[\p{Script=Arabic}\p{Script=Cyrillic}\p{Script=Bengali}]/gu) ?? [];
  const foreign = letters.filter((letter) => /\p{L}/u.test(letter) && !alphabet.test(letter));
  return foreign.length > letters.length * MAX_FOREIGN_LETTERS;
}

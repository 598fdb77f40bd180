/**
 * Languages that the detector does not have and takes for a neighbour, and common words of theirs that no such
 * neighbour writes.
 */
const UNTOLD: Record<string, { beside: string[]; words: string }> = {
  gl: {
    beside: ["pt", "es"],
    words:
      "non unha unhas dunha dunhas nunha nunhas onte moito moita moitos moitas coa coas cun cunha tamén xa hoxe dous dúas " +
      "cando máis teñen nin sen miña miñas súa súas túa ningún facer fai fixo xente irmán irmáns tódolos houbo pódese grazas mellor traballar traballo traballos",
  },
  ast: {
    beside: ["es"],
    words:
      "nun nuna col coles tolos toles tamién ye yera yá güei ayeri hermanu fíu munchu munches munchos xente trabayar facer " +
      "fai tien tienen pel díes llingua",
  },
  oc: {
    beside: ["ca"],
    words:
      "jorn jorns aquò tanben fòrça dempuèi pichon pichona nòstre nòstra vòstre fraire prèp demòra trabalhar uèi totjorn ostal ieu",
  },
  mk: {
    beside: ["bg", "sr"],
    words:
      "во со ќе сум ова оваа овој тие јас бидејќи според затоа многу врнеше излеговме секоја можат беа бевме мојот мојата моите неговиот",
  },
  af: {
    beside: ["nl"],
    words: "'n nie sy hulle hy jy baie hierdie daardie sal julle soos mense vir naby graag",
  },
  lb: {
    beside: ["de"],
    words:
      "ech hatt eng engem enger ass sinn hunn huet och awer vun vum fir beim mäi mäin däi säi mam wéi kënnen gëtt dës dëst mer",
  },
  bho: {
    beside: ["hi"],
    words:
      "बा बाटे बाड़े बाड़ी बानी रहल रहली हमार तोहार एगो ओकर ओकरा हमनी हमरा भइल गइल कइल दिहल होला जाला रहेला करेला नइखे लोगन खातिर आउर अउर",
  },
  sa: {
    beside: ["hi", "mr"],
    words:
      "च अस्ति सन्ति आसीत् भवति भवन्ति मम तव तत् एतत् यत् एव अपि इति तस्य तस्याः अहम् अहं वयम् वयं गच्छति वसति करोति",
  },
  yi: {
    beside: ["he"],
    words:
      "און איז דער דאָס דאס אויף ניט נישט מיט פון פֿון האָט האט אַז וואָס וואס אָבער אבער יעדן האָבן מײַן מיין",
  },
};

/** Fewer may be a name or a quotation. */
const MIN_SHARE = 0.1;
const MIN_WORDS = 2;

/** The language that a text is in where it is not the one that the detector takes it for; null where it is. */
export function neighbourOf(told: string, text: string): string | null {
  const words = text.toLowerCase().match(/'?[\p{L}\p{M}\u200c\u200d]+/gu) ?? [];
  for (const [language, { beside, words: list }] of Object.entries(UNTOLD)) {
    if (!beside.includes(told)) continue;
    const own = new Set(list.split(" "));
    const found = words.filter((word) => own.has(word));
    if (found.length >= MIN_SHARE * words.length && new Set(found).size >= MIN_WORDS)
      return language;
  }
  return null;
}

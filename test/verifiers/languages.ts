/** What a model would answer in each language of IFEval, sentence by sentence. */
export const IFEVAL_LANGUAGES: Record<string, string[]> = {
  en: [
    "The library opens at nine in the morning and closes late in the evening.",
    "We should plant more trees along the river before the summer begins.",
    "Nobody knew why the old clock had stopped, but everyone liked the silence.",
  ],
  es: [
    "La biblioteca abre a las nueve de la mañana y cierra muy tarde por la noche.",
    "Deberíamos plantar más árboles junto al río antes de que empiece el verano.",
    "Nadie sabía por qué se había parado el viejo reloj, pero a todos les gustaba el silencio.",
  ],
  pt: [
    "A biblioteca abre às nove da manhã e fecha muito tarde à noite.",
    "Deveríamos plantar mais árvores junto ao rio antes que comece o verão.",
    "Ninguém sabia por que o velho relógio tinha parado, mas todos gostavam do silêncio.",
  ],
  ar: [
    "تفتح المكتبة أبوابها في التاسعة صباحا وتغلق في وقت متأخر من المساء.",
    "يجب أن نزرع المزيد من الأشجار على ضفاف النهر قبل أن يبدأ الصيف.",
    "لم يكن أحد يعرف لماذا توقفت الساعة القديمة، لكن الجميع أحبوا الصمت.",
  ],
  hi: [
    "पुस्तकालय सुबह नौ बजे खुलता है और देर शाम को बंद होता है।",
    "गर्मी शुरू होने से पहले हमें नदी के किनारे और पेड़ लगाने चाहिए।",
    "किसी को नहीं पता था कि पुरानी घड़ी क्यों रुक गई, लेकिन सबको वह शांति पसंद आई।",
  ],
  fr: [
    "La bibliothèque ouvre à neuf heures du matin et ferme tard dans la soirée.",
    "Nous devrions planter plus d'arbres au bord de la rivière avant le début de l'été.",
    "Personne ne savait pourquoi la vieille horloge s'était arrêtée, mais tout le monde aimait le silence.",
  ],
  ru: [
    "Библиотека открывается в девять часов утра и закрывается поздно вечером.",
    "Нам следует посадить больше деревьев вдоль реки до начала лета.",
    "Никто не знал, почему остановились старые часы, но тишина нравилась всем.",
  ],
  de: [
    "Die Bibliothek öffnet um neun Uhr morgens und schließt erst spät am Abend.",
    "Wir sollten mehr Bäume am Fluss pflanzen, bevor der Sommer beginnt.",
    "Niemand wusste, warum die alte Uhr stehen geblieben war, aber alle mochten die Stille.",
  ],
  ja: [
    "図書館は朝九時に開き、夜遅くに閉まります。",
    "夏が始まる前に、川沿いにもっと木を植えるべきです。",
    "古い時計がなぜ止まったのか誰も知りませんでしたが、みんなその静けさが好きでした。",
  ],
  it: [
    "La biblioteca apre alle nove del mattino e chiude la sera tardi.",
    "Dovremmo piantare più alberi lungo il fiume prima che inizi l'estate.",
    "Nessuno sapeva perché il vecchio orologio si fosse fermato, ma a tutti piaceva il silenzio.",
  ],
  bn: [
    "গ্রন্থাগার সকাল নয়টায় খোলে এবং সন্ধ্যার অনেক পরে বন্ধ হয়।",
    "গ্রীষ্ম শুরু হওয়ার আগে আমাদের নদীর ধারে আরও গাছ লাগানো উচিত।",
    "পুরনো ঘড়িটি কেন থেমে গিয়েছিল তা কেউ জানত না, কিন্তু সবাই সেই নীরবতা পছন্দ করত।",
  ],
  uk: [
    "Бібліотека відчиняється о дев'ятій ранку і зачиняється пізно ввечері.",
    "Нам варто посадити більше дерев уздовж річки, перш ніж почнеться літо.",
    "Ніхто не знав, чому зупинився старий годинник, але тиша подобалася всім.",
  ],
  th: [
    "ห้องสมุดเปิดตอนเก้าโมงเช้าและปิดตอนดึก",
    "เราควรปลูกต้นไม้ริมแม่น้ำให้มากขึ้นก่อนฤดูร้อนจะเริ่มต้น",
    "ไม่มีใครรู้ว่าทำไมนาฬิกาเก่าจึงหยุดเดิน แต่ทุกคนชอบความเงียบ",
  ],
  ur: [
    "کتب خانہ صبح نو بجے کھلتا ہے اور رات گئے بند ہوتا ہے۔",
    "گرمیوں کے آغاز سے پہلے ہمیں دریا کے کنارے مزید درخت لگانے چاہئیں۔",
    "کسی کو معلوم نہیں تھا کہ پرانی گھڑی کیوں رک گئی، لیکن سب کو خاموشی پسند تھی۔",
  ],
  ta: [
    "நூலகம் காலை ஒன்பது மணிக்குத் திறந்து இரவு தாமதமாக மூடப்படுகிறது.",
    "கோடை தொடங்கும் முன் ஆற்றங்கரையில் அதிக மரங்களை நட வேண்டும்.",
    "பழைய கடிகாரம் ஏன் நின்றது என்று யாருக்கும் தெரியாது, ஆனால் அமைதி அனைவருக்கும் பிடித்திருந்தது.",
  ],
  te: [
    "గ్రంథాలయం ఉదయం తొమ్మిది గంటలకు తెరుచుకుని రాత్రి ఆలస్యంగా మూసుకుంటుంది.",
    "వేసవి ప్రారంభమయ్యే ముందు మనం నది ఒడ్డున మరిన్ని చెట్లు నాటాలి.",
    "పాత గడియారం ఎందుకు ఆగిపోయిందో ఎవరికీ తెలియదు, కానీ ఆ నిశ్శబ్దం అందరికీ నచ్చింది.",
  ],
  bg: [
    "Библиотеката отваря в девет часа сутринта и затваря късно вечерта.",
    "Трябва да засадим повече дървета край реката, преди да започне лятото.",
    "Никой не знаеше защо старият часовник е спрял, но всички харесваха тишината.",
  ],
  ko: [
    "도서관은 아침 아홉 시에 열고 밤늦게 닫습니다.",
    "여름이 시작되기 전에 강가에 나무를 더 심어야 합니다.",
    "낡은 시계가 왜 멈췄는지 아무도 몰랐지만 모두가 그 고요함을 좋아했습니다.",
  ],
  pl: [
    "Biblioteka otwiera się o dziewiątej rano i zamyka późnym wieczorem.",
    "Powinniśmy posadzić więcej drzew nad rzeką, zanim zacznie się lato.",
    "Nikt nie wiedział, dlaczego stary zegar stanął, ale wszystkim podobała się cisza.",
  ],
  he: [
    "הספרייה נפתחת בתשע בבוקר ונסגרת בשעה מאוחרת בערב.",
    "כדאי לנו לשתול עוד עצים לאורך הנהר לפני שהקיץ מתחיל.",
    "איש לא ידע מדוע השעון הישן נעצר, אבל כולם אהבו את השקט.",
  ],
  fa: [
    "کتابخانه ساعت نه صبح باز می‌شود و دیروقت شب بسته می‌شود.",
    "باید پیش از آغاز تابستان درختان بیشتری در کنار رودخانه بکاریم.",
    "هیچ‌کس نمی‌دانست چرا ساعت قدیمی از کار افتاده است، اما همه سکوت را دوست داشتند.",
  ],
  vi: [
    "Thư viện mở cửa lúc chín giờ sáng và đóng cửa rất muộn vào buổi tối.",
    "Chúng ta nên trồng thêm cây dọc bờ sông trước khi mùa hè bắt đầu.",
    "Không ai biết vì sao chiếc đồng hồ cũ dừng lại, nhưng ai cũng thích sự yên tĩnh.",
  ],
  ne: [
    "पुस्तकालय बिहान नौ बजे खुल्छ र राति अबेरसम्म बन्द हुन्छ।",
    "गर्मी सुरु हुनुभन्दा पहिले हामीले नदीको किनारमा थप रूखहरू रोप्नुपर्छ।",
    "पुरानो घडी किन रोकियो भनेर कसैलाई थाहा थिएन, तर सबैलाई त्यो शान्ति मन पर्थ्यो।",
  ],
  sw: [
    "Maktaba hufunguliwa saa tatu asubuhi na kufungwa usiku sana.",
    "Tunapaswa kupanda miti zaidi kando ya mto kabla ya majira ya joto kuanza.",
    "Hakuna aliyejua kwa nini saa ya zamani ilisimama, lakini kila mtu alipenda ukimya huo.",
  ],
  kn: [
    "ಗ್ರಂಥಾಲಯವು ಬೆಳಿಗ್ಗೆ ಒಂಬತ್ತು ಗಂಟೆಗೆ ತೆರೆದು ರಾತ್ರಿ ತಡವಾಗಿ ಮುಚ್ಚುತ್ತದೆ.",
    "ಬೇಸಿಗೆ ಆರಂಭವಾಗುವ ಮೊದಲು ನಾವು ನದಿಯ ದಡದಲ್ಲಿ ಹೆಚ್ಚು ಮರಗಳನ್ನು ನೆಡಬೇಕು.",
    "ಹಳೆಯ ಗಡಿಯಾರ ಏಕೆ ನಿಂತಿತು ಎಂದು ಯಾರಿಗೂ ತಿಳಿದಿರಲಿಲ್ಲ, ಆದರೆ ಎಲ್ಲರಿಗೂ ಮೌನ ಇಷ್ಟವಾಗಿತ್ತು.",
  ],
  mr: [
    "ग्रंथालय सकाळी नऊ वाजता उघडते आणि रात्री उशिरा बंद होते.",
    "उन्हाळा सुरू होण्यापूर्वी आपण नदीच्या काठी आणखी झाडे लावली पाहिजेत.",
    "जुने घड्याळ का थांबले हे कोणालाच माहीत नव्हते, पण सगळ्यांना ती शांतता आवडली.",
  ],
  gu: [
    "પુસ્તકાલય સવારે નવ વાગ્યે ખુલે છે અને મોડી સાંજે બંધ થાય છે.",
    "ઉનાળો શરૂ થાય તે પહેલાં આપણે નદી કિનારે વધુ વૃક્ષો વાવવા જોઈએ.",
    "જૂની ઘડિયાળ કેમ બંધ પડી તે કોઈને ખબર નહોતી, પણ બધાને તે શાંતિ ગમતી હતી.",
  ],
  pa: [
    "ਲਾਇਬ੍ਰੇਰੀ ਸਵੇਰੇ ਨੌਂ ਵਜੇ ਖੁੱਲ੍ਹਦੀ ਹੈ ਅਤੇ ਦੇਰ ਸ਼ਾਮ ਨੂੰ ਬੰਦ ਹੁੰਦੀ ਹੈ।",
    "ਗਰਮੀਆਂ ਸ਼ੁਰੂ ਹੋਣ ਤੋਂ ਪਹਿਲਾਂ ਸਾਨੂੰ ਦਰਿਆ ਦੇ ਕੰਢੇ ਹੋਰ ਰੁੱਖ ਲਾਉਣੇ ਚਾਹੀਦੇ ਹਨ।",
    "ਕਿਸੇ ਨੂੰ ਪਤਾ ਨਹੀਂ ਸੀ ਕਿ ਪੁਰਾਣੀ ਘੜੀ ਕਿਉਂ ਰੁਕ ਗਈ, ਪਰ ਸਭ ਨੂੰ ਚੁੱਪ ਪਸੰਦ ਸੀ।",
  ],
  ml: [
    "വായനശാല രാവിലെ ഒമ്പത് മണിക്ക് തുറന്ന് രാത്രി വൈകി അടയ്ക്കുന്നു.",
    "വേനൽ തുടങ്ങുന്നതിന് മുമ്പ് നമ്മൾ പുഴയോരത്ത് കൂടുതൽ മരങ്ങൾ നടണം.",
    "പഴയ ക്ലോക്ക് എന്തുകൊണ്ട് നിന്നുവെന്ന് ആർക്കും അറിയില്ലായിരുന്നു, പക്ഷേ എല്ലാവർക്കും ആ നിശ്ശബ്ദത ഇഷ്ടമായിരുന്നു.",
  ],
  fi: [
    "Kirjasto avataan yhdeksältä aamulla ja suljetaan myöhään illalla.",
    "Meidän pitäisi istuttaa lisää puita joen varrelle ennen kuin kesä alkaa.",
    "Kukaan ei tiennyt, miksi vanha kello oli pysähtynyt, mutta kaikki pitivät hiljaisuudesta.",
  ],
};

/** Their neighbours, which IFEval asks for nowhere: none of them is one of those above. */
export const NEIGHBOURS: Record<string, string> = {
  catalan:
    "La biblioteca obre a les nou del matí i tanca molt tard al vespre. Hauríem de plantar més arbres vora el riu abans que comenci l'estiu.",
  romanian:
    "Biblioteca se deschide la ora nouă dimineața și se închide seara târziu. Ar trebui să plantăm mai mulți copaci lângă râu.",
  dutch:
    "De bibliotheek gaat om negen uur 's ochtends open en sluit 's avonds laat. We zouden meer bomen langs de rivier moeten planten.",
  czech:
    "Knihovna se otevírá v devět hodin ráno a zavírá pozdě večer. Měli bychom u řeky zasadit více stromů, než začne léto.",
  estonian:
    "Raamatukogu avatakse hommikul kell üheksa ja suletakse hilja õhtul. Me peaksime istutama jõe äärde rohkem puid.",
  indonesian:
    "Perpustakaan buka pukul sembilan pagi dan tutup larut malam. Kita sebaiknya menanam lebih banyak pohon di tepi sungai.",
  belarusian:
    "Бібліятэка адчыняецца а дзявятай гадзіне раніцы і зачыняецца позна ўвечары. Нам варта пасадзіць больш дрэў уздоўж ракі.",
  serbian:
    "Библиотека се отвара у девет сати ујутру и затвара касно увече. Требало би да посадимо још дрвећа поред реке.",
  macedonian:
    "Библиотеката се отвора во девет часот наутро и се затвора доцна навечер. Треба да засадиме повеќе дрвја крај реката, пред да започне летото. Никој не знаеше зошто запрел стариот часовник, ѕидот ќе остане.",
  kazakh:
    "Кітапхана таңғы сағат тоғызда ашылып, кешке кеш жабылады. Жаз басталғанға дейін өзен жағасына көбірек ағаш отырғызуымыз керек.",
  pashto:
    "کتابتون د سهار په نهو بجو پرانیستل کېږي او د شپې ناوخته تړل کېږي. موږ باید د اوړي له پیل مخکې د سیند پر غاړه ډېرې ونې کېنوو.",
  sorani:
    "کتێبخانەکە کاتژمێر نۆی بەیانی دەکرێتەوە و درەنگانی شەو دادەخرێت. پێویستە پێش هاوین دارێکی زیاتر لە کەناری ڕووبارەکە بچێنین.",
  assamese:
    "পুথিভঁৰালটো ৰাতিপুৱা ন বজাত খোলে আৰু সন্ধিয়া পলমকৈ বন্ধ হয়। গৰম কাল আৰম্ভ হোৱাৰ আগতে আমি নদীৰ পাৰত অধিক গছ ৰুব লাগে।",
  chinese: "图书馆早上九点开门，晚上很晚才关门。夏天开始之前，我们应该在河边多种一些树。",
};

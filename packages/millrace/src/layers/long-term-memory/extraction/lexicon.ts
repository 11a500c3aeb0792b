const words = (...lists: readonly string[]): ReadonlySet<string> =>
  new Set(lists.flatMap((list) => list.split(' ')));

/**
 * Words of a fact that need no support: they say that something holds. English first, then German,
 * French, Spanish, Italian, Portuguese, and words for “user”.
 */
export const neutral = words(
  'a an the of in on at to from for with by as and or is are was were be been being am has have had having do does did',
  'user users person people that this these those it its they their them he his she her i my me we our us s m ve re d ll t',
  'called named name names live lives living lived reside resides based located relocated moved moves works work working',
  'worked job like likes liked love loves enjoy enjoys prefer prefers preferred preference favourite favorite drink drinks',
  'eat eats play plays go goes own owns speak speaks use uses get gets year years old age aged one now currently today',
  'usually often also very really some any there who which about home city lived feel feels keep keeps become became than',
  'please thanks bitte favor likely ca wo into since while when if always every each all both only just so can cannot',
  'der die das den dem ein eine einen einem einer ist sind hat haben war nutzer nutzerin benutzer benutzerin heißt wohnt lebt',
  'arbeitet mag liebt trinkt isst spielt und oder in im am als von zu seit',
  'le la les un une des du de est sont a ont utilisateur utilisatrice habite vit travaille aime et ou au aux en comme depuis l',
  'el los las una es son tiene usuario usuaria vive trabaja y o como desde gusta llama se al del',
  'il lo gli i uno è ha sono utente abita vive lavora come dal della di e si chiama',
  'os um uma é tem usuário usuária mora trabalha gosta como desde do da no na',
  '用户 住在 住 喜欢 是 有 的 了 在 我 和 也 很 都 就 着 过 并且 已经 每天 ユーザー さん です ます いる 住ん 好き 사용자 사용자는 살고 산다 살아요 있다 있어요 좋아한다 좋아해요 저는 나는',
  'пользователь живёт живет в и на с у работает',
);

export const numbers: ReadonlyMap<string, string> = new Map(
  'zero - two three four five six seven eight nine ten eleven twelve'
    .split(' ')
    .map((word, value) => [word, String(value)]),
);

/** Words that deny, or say that something has ended: “hates” denies “likes”. */
export const negative = words(
  'not no never none nothing neither nor without cannot hate hates hated dislike dislikes avoid avoids stopped stop quit',
  'refuse refuses former formerly ex anymore longer except unlike',
  'nicht kein keine keinen keinem keiner nie niemals ohne hasse hasst pas jamais sans aucun aucune déteste nunca jamás sin',
  'odio odia non mai senza não sem odeio niet geen nooit inte aldrig не нет никогда без nie',
);

/** Scripts without spaces. */
export const negativeSigns = /[不没沒無未別别非]|ない|ません|なく|안 |않|못|없|아니/u;

/** A wish says what is not so. */
export const wishing = words(
  'want wants wanted wish wishes hope hopes plan plans planning dream dreams dreaming consider considering considers maybe',
  'perhaps might would going almost nearly möchte will würde voudrais veux quiero quisiera vorrei quero хочу',
);

/** Words of a fact that keep a wish one. */
export const wished = words(
  'want wants wanted wish wishes hope hopes plan plans planning dream dreams considers considering looks prefers likes going',
  'möchte will würde voudrait veut quiere vuole quer хочет',
);

export const firstPerson = words(
  'i we ich wir je j nous yo nosotros nosotras io noi eu nós я мы',
  'my me mine myself our us mein meine meinen meinem meiner mir mich unser unsere uns mon ma mes moi notre nos mi mis mío mía',
  'nuestro nuestra mio mia miei mie nostro nostra meu minha meus minhas мой моя моё мои мне меня',
);

/** Subjects of the first person. */
export const speaking = words('i we ich wir je j nous yo nosotros nosotras io noi eu nós я мы');

/** Subjects of the third person. */
export const pronouns = words(
  'he she they someone everyone everybody er il elle ils elles él ella ellos ellas lui lei loro ele ela eles elas он она они',
);

export const people = words(
  'sister sisters brother brothers sibling siblings mother mothers mum mom father fathers dad parent parents wife husband',
  'partner spouse girlfriend boyfriend fiancé fiancée son sons daughter daughters child children kid kids baby friend friends',
  'neighbour neighbor neighbours neighbors colleague colleagues coworker coworkers boss manager employer client customer uncle',
  'aunt cousin cousins grandmother grandfather grandma grandpa grandparents nephew niece flatmate roommate housemate doctor',
  'therapist teammate landlord tenant guy man woman girl boy family everyone user assistant admin system page mail',
  'schwester bruder mutter vater eltern frau mann sohn tochter kind kinder freund freundin nachbar nachbarin kollege kollegin chef',
  'sœur soeur frère mère père femme mari fils fille ami amie voisin voisine collègue patron',
  'hermana hermano madre padre esposa esposo hijo hija amigo amiga vecino vecina jefe',
  'sorella fratello moglie marito figlio figlia amico amica vicino collega capo irmã irmão mãe pai filho filha chefe',
  'сестра брат мать отец жена муж сын дочь друг подруга сосед',
);

/** Verbs in the third person, without a first person in their clause, are about another person. */
export const thirdPerson = words(
  'is was has does lives works loves likes hates wants prefers drinks eats plays owns needs speaks goes moved says said thinks',
  'ist hat wohnt lebt arbeitet mag liebt hasst est habite vit travaille aime tiene vive trabaja è abita lavora mora trabalha живёт живет работает любит',
);

export const reporting = words(
  'say says said write writes wrote claim claims claimed think thinks thought believe believes state states read reads',
  'mention mentions mentioned suggest suggests suggested assume assumes ask asks asked according',
  'sagt sagte meint meinte schreibt schrieb behauptet dit disait écrit dice dijo escribe escribió scrive disse ha говорит сказал сказала пишет',
);

export const asking = words(
  'what which who whom whose where when why how should shall can could would will do does did is are was were am may might has have',
  'was wer wo wann warum wie soll sollte kann könnte ist sind hast hat quoi qui où quand pourquoi comment qué quién dónde cuándo cómo che chi dove quando perché',
);

export const supposing = words(
  'if suppose supposing imagine assume assuming hypothetically pretend wenn falls angenommen si imagine supongamos imagina se immagina если',
);

export const joking = words(
  'kidding joking joke jokes jk lol sarcasm scherz blague broma scherzo шучу',
);

export const forgetting = words(
  'forget delete remove erase unremember drop discard vergiss vergessen lösche oublie oubliez efface olvida olvide borra dimentica cancella esqueça esquece забудь удали',
);

export const forgettingSigns = /忘记|忘了|忘掉|忘れて|잊어/u;

/** An end of what was, beside a denial. */
export const ending = words(
  'sold sell gave lost left broke divorced separated died wrong incorrect mistake false untrue correction corrected actually moved',
  'changed switched finished ended cancelled canceled over past instead verkauft falsch vendu faux vendí falso venduto sbagliato',
);

/** A form without endings of English, for words that are long enough. */
export const endings = (word: string): string => {
  if (word.length < 4 || /(?:ss|us|is)$/u.test(word)) return word;
  const stem = word.replace(/(?:ies|ied)$/u, 'y').replace(/(?:ing|ed|es|s)$/u, '');
  return stem.length < 3 ? word : stem.replace(/([bdgmnprt])\1$/u, '$1').replace(/e$/u, '');
};

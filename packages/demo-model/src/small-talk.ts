/** Tells whether a text greets, thanks or says goodbye, and asks nothing. */
export const isSmallTalk = (text: string): boolean => text.length < 60 && pleasantries.test(text);

const pleasantries =
  /^[\s\p{P}]*(?:(?:hi|hello|hey|hallo|howdy|greetings|good (?:morning|afternoon|evening|day)|thanks|thank you|thx|cheers|bye|goodbye|ok|okay|great|nice|cool|how are you|there|everyone|very much|so much|a lot|again|today|doing)[\s\p{P}]*)+$/iu;

/** Tells whether a text asks what the model is, or what it can do. */
export const asksForHelp = (text: string): boolean =>
  text.length < 120 && helpQuestions.some((question) => question.test(text.trim()));

const helpQuestions = [
  /^(?:help|help me|usage|commands|tools|\?+)[\s\p{P}]*$/iu,
  /\bwhat (?:can|could|do|else can) you (?:do|know|offer|help)\b/iu,
  /\bwhat (?:kind of |sort of )?(?:questions|things) (?:can|may|should|could) (?:i|you)\b/iu,
  /\b(?:what|which) (?:are your )?tools\b(?: (?:do you have|have you got|can you use|are there|are available))?[\s?.!]*$/iu,
  /\b(?:who|what) (?:are|r) you\b/iu,
  /\bare you (?:an? )?(?:ai|llm|bot|robot|human|person|language model|large language model|real)\b/iu,
  /\b(?:what is|what's) your name\b/iu,
  /\bhow (?:can|do) (?:i|you) (?:use you|help|help me)\b/iu,
  /\bwhat (?:can|should) i ask\b/iu,
];

/** Answers thanks, goodbyes and assent; any other small talk needs an introduction. */
export const smallReply = (text: string): string | undefined => {
  if (/\b(?:thanks|thank you|thx|cheers)\b/iu.test(text)) return 'You are welcome.';
  if (/\b(?:bye|goodbye)\b/iu.test(text)) return 'Goodbye.';
  return /^\W*(?:ok|okay|great|nice|cool)\b/iu.test(text) ? 'All right.' : undefined;
};

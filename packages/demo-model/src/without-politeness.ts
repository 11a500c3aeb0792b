/** Gives a text without the words of politeness before its first word that matters. */
export const withoutPoliteness = (text: string): string => {
  const rest = text.trim().replace(politeness, '');
  return rest === '' ? text.trim() : rest;
};

const politeness =
  /^(?:(?:please|kindly|now|then|and|also|so|but|or|ok|okay|hey|hi|hello|well|(?:can|could|would|will) you|(?:i want|i need|i'd like|i would like|i'd love)(?: you)? to|do you know|let's|just)(?:[ ,]+|$)){1,8}/iu;

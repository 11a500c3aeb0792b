import type { ContentBlock, UserMessage } from 'millrace';

/** Returns the content of a user message, prefixed with the user's name, for APIs without a field for the name. */
export const withNamePrefix = ({ name, content }: UserMessage): readonly ContentBlock[] => {
  if (name === undefined || name === '') return content;
  const [first, ...rest] = content;
  return first?.type === 'text'
    ? [{ type: 'text', text: `${name}: ${first.text}` }, ...rest]
    : [{ type: 'text', text: `${name}:` }, ...content];
};

import { type Message, textOf } from 'millrace';

/** What the model answers: what came of each tool, by the words of the results. It shows what the model has seen. */
export const answerOf = (messages: readonly Message[]): string => {
  const results = messages.flatMap((message) =>
    message.role === 'tool'
      ? message.content.filter(({ suspended }) => suspended === undefined)
      : [],
  );
  return `Done: ${results.map(({ content }) => textOf({ content })).join('; ')}`;
};

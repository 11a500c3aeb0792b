import { fieldOf, idOf, lastOfUser, refuseNoObject, saying, textOfParts } from '../inbound.js';

/** What a chat request of the AI SDK asks for. */
export interface UiMessagesInput {
  /** What the user said last: the input of a call. */
  readonly input: string;
  /** The conversation, as the client calls it. It is not secret, and says nothing about who asks. */
  readonly chatId: string;
}

/**
 * Reads the body of a request that the AI SDK's chat transport sends: the text of its last message, which must be
 * the user's. What came before is not taken from the client; a session remembers it. Throws an `invalidRequest`
 * error where the body is something else.
 */
export const inputOfUiMessages = (body: unknown): UiMessagesInput => {
  refuseNoObject(body);
  const parts = fieldOf(lastOfUser(body), 'parts');
  return { input: saying(textOfParts(parts)), chatId: idOf(fieldOf(body, 'id'), 'id') };
};

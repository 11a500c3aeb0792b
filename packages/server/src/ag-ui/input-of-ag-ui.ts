import {
  badRequest,
  fieldOf,
  idOf,
  lastOfUser,
  refuseNoObject,
  saying,
  textOfParts,
} from '../inbound.js';

/** What a client of AG-UI asks for. */
export interface AgUiInput {
  /** What the user said last: the input of a call. */
  readonly input: string;
  /** The conversation, as the client calls it. It is not secret, and says nothing about who asks. */
  readonly threadId: string;
  /** The run, as the client calls it: for `toAgUi`. */
  readonly runId: string;
}

/**
 * Reads an AG-UI `RunAgentInput`: the text of its last message, which must be the user's. What came before, and
 * the state, are not taken from the client; its tools are not offered to the model. Throws an `invalidRequest`
 * error where the body is something else, and where it answers an interrupt.
 */
export const inputOfAgUi = (body: unknown): AgUiInput => {
  refuseNoObject(body);
  const resume = fieldOf(body, 'resume');
  if (Array.isArray(resume) && resume.length > 0) throw badRequest("'resume' is not supported");
  const content = fieldOf(lastOfUser(body), 'content');
  return {
    input: saying(typeof content === 'string' ? content : textOfParts(content)),
    threadId: idOf(fieldOf(body, 'threadId'), 'threadId'),
    runId: idOf(fieldOf(body, 'runId'), 'runId'),
  };
};

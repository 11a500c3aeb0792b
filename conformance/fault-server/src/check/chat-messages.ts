import { isRecord } from '../is-record.js';
import { recordsIn, repeated, stringAt } from './records.js';
import {
  also,
  anything,
  filledString,
  jsonText,
  list,
  matching,
  name,
  nullable,
  object,
  oneOf,
  record,
  rule,
  type Shape,
  string,
  tagged,
  textOr,
} from './shape.js';

const breakpoint = { prompt_cache_breakpoint: record };

const textPart = object({ type: string, text: string }, breakpoint);
const refusalPart = object({ type: string, refusal: string });

/** An address that OpenAI's servers can read: on the web, or the bytes themselves. */
export const mediaUrl: Shape = matching(
  /^(https?:\/\/|data:[\w.+-]+\/[\w.+-]+;base64,[A-Za-z0-9+/=]+$)/,
  'an http(s) address or a base64 data URL',
);

const imagePart = object(
  {
    type: string,
    image_url: object({ url: mediaUrl }, { detail: oneOf('auto', 'low', 'high') }),
  },
  breakpoint,
);

const audioPart = object(
  {
    type: string,
    input_audio: object({ data: filledString, format: oneOf('wav', 'mp3') }),
  },
  breakpoint,
);

const filePart = object(
  {
    type: string,
    file: also(
      object({}, { file_data: mediaUrl, file_id: filledString, filename: filledString }),
      rule(`needs 'file_id', or 'file_data' and 'filename'.`, (file) =>
        'file_data' in file ? 'filename' in file : 'file_id' in file,
      ),
    ),
  },
  breakpoint,
);

const texts = textOr(string, list(tagged('type', { text: textPart }), 1));

const userContent = textOr(
  string,
  list(
    tagged('type', {
      text: textPart,
      image_url: imagePart,
      input_audio: audioPart,
      file: filePart,
    }),
    1,
  ),
);

const speaker = matching(/^[^\s<|\\/>]{1,64}$/);

/** OpenAI takes no longer one here, and up to 64 characters on the Responses wire. */
const callId = matching(/^[^]{1,40}$/);

const toolCall = tagged('type', {
  function: object({
    id: callId,
    type: string,
    function: object({ name, arguments: jsonText }),
  }),
  custom: object({ id: callId, type: string, custom: object({ name, input: string }) }),
});

const assistant = also(
  object(
    { role: string },
    {
      content: nullable(
        textOr(string, list(tagged('type', { text: textPart, refusal: refusalPart }), 1)),
      ),
      tool_calls: list(toolCall, 1, 128),
      refusal: nullable(string),
      name: speaker,
      audio: nullable(object({ id: filledString })),
      function_call: anything,
    },
  ),
  rule(`needs 'content' or 'tool_calls'.`, (message) =>
    ['content', 'tool_calls', 'refusal', 'audio', 'function_call'].some(
      (key) => (message[key] ?? null) !== null,
    ),
  ),
);

/** One message of a chat. */
export const chatMessage: Shape = tagged('role', {
  system: object({ role: string, content: texts }, { name: speaker }),
  developer: object({ role: string, content: texts }, { name: speaker }),
  user: object({ role: string, content: userContent }, { name: speaker }),
  assistant,
  tool: object({ role: string, content: texts, tool_call_id: callId }),
});

const callIds = (message: Readonly<Record<string, unknown>>): readonly string[] =>
  recordsIn(message['tool_calls']).map((call) => stringAt(call, 'id'));

/** Each tool call is answered by one tool message right behind it, and each tool message answers a call. */
export const chatPairing: Shape = (body) => {
  const messages = recordsIn(isRecord(body) ? body['messages'] : undefined);
  const problems: string[] = [];
  let open: readonly string[] = [];
  const unanswered = (): readonly string[] =>
    open.length === 0
      ? []
      : [
          `An assistant message with 'tool_calls' must be followed by tool messages responding to each ` +
            `'tool_call_id'. The following tool_call_ids did not have response messages: ${open.join(', ')}`,
        ];
  messages.forEach((message, index) => {
    if (message['role'] !== 'tool') {
      problems.push(...unanswered());
      open = callIds(message);
      return;
    }
    const id = stringAt(message, 'tool_call_id');
    if (!open.includes(id)) {
      problems.push(
        `messages[${index}]: a message with role 'tool' must be a response to a call of the message ` +
          `with 'tool_calls' before it; '${id}' is none that is open.`,
      );
    }
    open = open.filter((it) => it !== id);
  });
  const twice = repeated(messages.flatMap(callIds)).map((id) => `Duplicate tool call id '${id}'.`);
  return [...problems, ...unanswered(), ...twice];
};

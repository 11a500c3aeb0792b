import { isRecord } from '../is-record.js';
import { mediaUrl } from './chat-messages.js';
import { recordsIn, repeated, stringAt } from './records.js';
import {
  also,
  anything,
  type Fields,
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

const status = nullable(oneOf('in_progress', 'completed', 'incomplete'));
const breakpoint = { prompt_cache_breakpoint: record };

const inputParts: Fields = {
  input_text: object({ type: string, text: string }, breakpoint),
  input_image: also(
    object(
      { type: string },
      {
        detail: oneOf('low', 'high', 'auto', 'original'),
        image_url: nullable(mediaUrl),
        file_id: nullable(filledString),
        ...breakpoint,
      },
    ),
    rule(`needs 'image_url' or 'file_id'.`, (part) =>
      Boolean(part['image_url'] ?? part['file_id']),
    ),
  ),
  input_file: also(
    object(
      { type: string },
      {
        detail: oneOf('auto', 'low', 'high'),
        file_data: mediaUrl,
        file_id: nullable(filledString),
        file_url: filledString,
        filename: filledString,
        ...breakpoint,
      },
    ),
    rule(`needs 'file_id', 'file_url', or 'file_data' and 'filename'.`, (part) =>
      'file_data' in part ? 'filename' in part : Boolean(part['file_id'] ?? part['file_url']),
    ),
  ),
};

const outputParts: Fields = {
  output_text: object(
    { type: string, text: string },
    { annotations: list(record), logprobs: anything },
  ),
  refusal: object({ type: string, refusal: string }),
  // A type that no client knows yet, but that the server sends.
  output_hologram: record,
};

const content = (parts: Fields): Shape => textOr(string, list(tagged('type', parts), 1));

const idOf = (prefix: string): Shape =>
  matching(new RegExp(`^${prefix}_`), `an ID that begins with '${prefix}'`);

const asked = object(
  { role: string, content: content(inputParts) },
  { type: oneOf('message'), status, id: nullable(idOf('msg')) },
);

const message = tagged('role', {
  user: asked,
  system: asked,
  developer: asked,
  assistant: object(
    { role: string, content: content(outputParts) },
    {
      type: oneOf('message'),
      id: idOf('msg'),
      status,
      phase: nullable(oneOf('commentary', 'final_answer')),
    },
  ),
});

const callId = matching(/^[^]{1,64}$/);

const functionCall = object(
  { type: string, call_id: callId, name, arguments: jsonText },
  { id: idOf('fc'), status, caller: anything, namespace: string },
);

const functionCallOutput = object(
  { type: string, call_id: callId, output: content(inputParts) },
  { id: nullable(idOf('fc')), status, caller: anything },
);

const reasoning = object(
  {
    type: string,
    id: idOf('rs'),
    summary: list(object({ type: oneOf('summary_text'), text: string })),
  },
  {
    content: list(object({ type: oneOf('reasoning_text'), text: string })),
    encrypted_content: nullable(string),
    status,
  },
);

const isMessage = (value: unknown): boolean =>
  isRecord(value) && (value['type'] ?? 'message') === 'message';

/** One item of the input. Items of tools that run at the vendor are taken as they are. */
export const responsesItem: Shape = (value, place) =>
  (isMessage(value) ? message : tagged('type', items, record))(value, place);

const items: Fields = {
  function_call: functionCall,
  function_call_output: functionCallOutput,
  reasoning,
};

type Item = Readonly<Record<string, unknown>>;

const typeOf = (item: Item): string => stringAt(item, 'type') || 'message';

const itemsOf = (body: unknown): readonly Item[] => recordsIn(isRecord(body) ? body['input'] : []);

/** Calls that wait for a result, and the key of the ID that it names. */
const answered: ReadonlyMap<string, string> = new Map([
  ['function_call', 'call_id'],
  ['custom_tool_call', 'call_id'],
  ['apply_patch_call', 'call_id'],
  ['computer_call', 'call_id'],
  ['local_shell_call', 'call_id'],
  ['shell_call', 'call_id'],
  ['mcp_approval_request', 'id'],
]);

/** The type of the call that an item answers, and its ID. */
const answerOf = (item: Item): readonly [type: string, id: string] | undefined => {
  const type = typeOf(item);
  if (type === 'mcp_approval_response') {
    return ['mcp_approval_request', stringAt(item, 'approval_request_id')];
  }
  if (!type.endsWith('_output')) return undefined;
  return [type.replace(/_output$/, ''), stringAt(item, 'call_id') || stringAt(item, 'id')];
};

/** Each call has one output somewhere behind it, and each output a call before it. */
export const responsesPairing: Shape = (body) => {
  const open = new Map<string, string>();
  const problems: string[] = [];
  const calls: string[] = [];
  for (const item of itemsOf(body)) {
    const type = typeOf(item);
    const key = answered.get(type);
    if (key !== undefined) {
      open.set(stringAt(item, key), type);
      calls.push(stringAt(item, key));
    }
    const [call, id] = answerOf(item) ?? ['', ''];
    if (!answered.has(call)) continue;
    if (open.get(id) !== call) {
      problems.push(
        `No tool call found for ${call.replaceAll('_', ' ')} output with call_id ${id}.`,
      );
    } else open.delete(id);
  }
  return [
    ...problems,
    ...[...open].map(
      ([id, type]) => `No tool output found for ${type.replaceAll('_', ' ')} ${id}.`,
    ),
    ...repeated(calls).map((id) => `Duplicate function call id '${id}'.`),
  ];
};

/** What the model says or asks for after it has reasoned. */
const followsReasoning = (item: Item | undefined): boolean =>
  item !== undefined &&
  (typeOf(item) === 'reasoning' || typeOf(item).endsWith('_call') || item['role'] === 'assistant');

/** Reasoning stands before what it led to, and carries its own content where the vendor stores nothing. */
export const responsesReasoning: Shape = (body) => {
  const all = itemsOf(body);
  const thoughts = all.filter((item) => typeOf(item) === 'reasoning');
  if (!isRecord(body) || thoughts.length === 0) return [];
  const alone = all
    .filter((item, at) => typeOf(item) === 'reasoning' && !followsReasoning(all[at + 1]))
    .map(
      (item) =>
        `Item '${stringAt(item, 'id')}' of type 'reasoning' was provided without its required following item.`,
    );
  const lost = thoughts
    .filter((item) => body['store'] === false && stringAt(item, 'encrypted_content') === '')
    .map(
      (item) =>
        `Item with id '${stringAt(item, 'id')}' not found. Items are not persisted when 'store' is set to false.`,
    );
  const { include } = body;
  const included = Array.isArray(include) && include.includes('reasoning.encrypted_content');
  const asksAgain = body['store'] !== false || included;
  return [
    ...alone,
    ...lost,
    ...(asksAgain
      ? []
      : [`'include' must hold 'reasoning.encrypted_content', as 'store' is false.`]),
  ];
};

/** No item is sent twice. */
export const responsesItemIds: Shape = (body) =>
  repeated(itemsOf(body).map((item) => stringAt(item, 'id')))
    .filter((id) => id !== '')
    .map((id) => `Duplicate item found with id ${id}.`);

import { isTooDeep } from '../../values/json.js';
import {
  type AssistantBlock,
  type AssistantMessage,
  type Citation,
  type ContentBlock,
  isContentBlock,
  type Message,
  plainBlock,
  type ResultSource,
  type Suspended,
  type Suspension,
  type Suspends,
  type TextBlock,
  type ThinkingBlock,
  type ToolCallBlock,
  type ToolMessage,
  type ToolResultBlock,
  type UserMessage,
  type VendorBlock,
  type VendorData,
  type VendorFacts,
  type WaitingBelow,
} from '../../values/message.js';
import { jsonCopy } from './session-state.js';
import {
  count,
  exactly,
  fieldsOf,
  flag,
  invalid,
  json,
  jsonObject,
  listOf,
  type Location,
  name,
  objectOf,
  ofType,
  oneOfThe,
  ownField,
  type Reader,
  text,
  unique,
} from './stored-values.js';

/** Of a message. */
const maxBlocks = 10_000;

const detailsOf: Reader<unknown> = (value, place) => {
  if (place.isForeign) return json(value, place);
  try {
    return isTooDeep(value) ? undefined : jsonCopy(value);
  } catch {
    return undefined;
  }
};

export const message: Reader<Message> = (value, place) => {
  const role = ownField(value, 'role');
  if (role === 'user' || role === 'assistant' || role === 'tool') {
    return messageReaders[role](value, place);
  }
  throw invalid(place, "is not a message: its 'role' must be 'user', 'assistant' or 'tool'");
};

const assistantBlock: Reader<AssistantBlock> = (value, place) => {
  const type = ownField(value, 'type');
  switch (type) {
    case 'tool_call':
      return toolCall(value, place);
    case 'thinking':
      return thinking(value, place);
    case 'vendor':
      return vendorBlock(value, place);
    case 'text':
      return textOfAnswer(value, place);
    default:
      return contentBlock(value, place);
  }
};

const assistantBlocks: Reader<readonly AssistantBlock[]> = (value, place) => {
  const blocks = listOf(assistantBlock, maxBlocks)(value, place);
  const uses = blocks.filter((block) => block.type === 'tool_call');
  unique(uses, ({ id }) => id, place);
  return blocks;
};

const contentBlock: Reader<ContentBlock> = (value, place) => {
  if (!isContentBlock(value)) throw invalid(place, 'is not a block of text, image, audio or file');
  const plain = plainBlock(value);
  fieldsOf(value, place, Object.keys(plain));
  if (plain.type !== 'text') {
    const at: Location = { ...place, path: `${place.path}.source` };
    fieldsOf(ownField(value, 'source'), at, Object.keys(plain.source));
  }
  return plain;
};

const vendorData = objectOf<VendorData>({ vendor: name, data: json });

const vendorBlock = objectOf<VendorBlock>({
  type: exactly('vendor'),
  vendor: name,
  kind: text,
  data: json,
});

const citation = objectOf<Citation>(
  {
    url: text,
    title: text,
    citedText: text,
    documentIndex: count,
    fileId: text,
    location: objectOf<NonNullable<Citation['location']>>({
      unit: oneOfThe('page', 'character', 'block'),
      start: count,
      end: count,
    }),
    start: count,
    end: count,
    vendorData,
  },
  'url',
  'title',
  'citedText',
  'documentIndex',
  'fileId',
  'location',
  'start',
  'end',
  'vendorData',
);

/** Text of a model, which has fields that other text has not. */
const textOfAnswer = objectOf<TextBlock>(
  {
    type: exactly('text'),
    text,
    citations: listOf(citation, maxBlocks),
    separate: flag,
    phase: oneOfThe('commentary', 'final_answer'),
    cache: oneOfThe(true, '5m', '1h'),
    vendorData,
  },
  'citations',
  'separate',
  'phase',
  'cache',
  'vendorData',
);

const source: Reader<ResultSource> = oneOfThe('client', 'program');

export const toolCall = ofType(
  'tool_call',
  objectOf<ToolCallBlock>(
    {
      type: exactly('tool_call'),
      id: name,
      // A model may call a tool without a name.
      name: text,
      input: jsonObject,
      invalidInput: text,
      refusal: text,
      suspends: objectOf<Suspends>({ request: json, from: source }, 'from'),
      vendorData,
    },
    'invalidInput',
    'refusal',
    'suspends',
    'vendorData',
  ),
);

const thinking = objectOf<ThinkingBlock>(
  { type: exactly('thinking'), text, signature: text, redacted: flag, vendorData },
  'signature',
  'redacted',
  'vendorData',
);

const contents = listOf(contentBlock, maxBlocks);

const below = objectOf<WaitingBelow>({
  rootId: name,
  waiting: listOf(
    objectOf<Suspension>({ toolCall, request: json, from: source, by: name }, 'by'),
    maxBlocks,
  ),
  steps: jsonObject,
});

const toolResult = ofType(
  'tool_result',
  objectOf<ToolResultBlock>(
    {
      type: exactly('tool_result'),
      toolCallId: name,
      content: contents,
      isError: flag,
      note: text,
      details: detailsOf,
      suspended: (value, place) => ({
        request: null,
        ...objectOf<Partial<Suspended> & Pick<Suspended, 'from'>>(
          { request: json, from: source, by: name, below },
          'request',
          'by',
          'below',
        )(value, place),
      }),
      from: exactly('client'),
      cancelled: listOf(name, maxBlocks),
    },
    'note',
    'details',
    'suspended',
    'from',
    'cancelled',
  ),
);

const counts: Reader<Readonly<Record<string, number>>> = (value, place) =>
  Object.fromEntries(
    Object.entries(jsonObject(value, place)).map(([key, it]) => [key, count(it, place)]),
  );

const vendorFacts = objectOf<VendorFacts>(
  {
    name,
    id: text,
    model: text,
    container: objectOf<NonNullable<VendorFacts['container']>>(
      { id: text, expiresAt: text },
      'expiresAt',
    ),
    reasoningTokens: count,
    cacheWrites: counts,
    toolUses: counts,
    stopReason: text,
    stopSequence: text,
    refusal: objectOf<NonNullable<VendorFacts['refusal']>>(
      { category: text, explanation: text },
      'category',
      'explanation',
    ),
    stopDetails: json,
    serviceTier: text,
  },
  'name',
  'id',
  'model',
  'container',
  'reasoningTokens',
  'cacheWrites',
  'toolUses',
  'stopReason',
  'stopSequence',
  'refusal',
  'stopDetails',
  'serviceTier',
);

const messageReaders: Readonly<Record<Message['role'], Reader<Message>>> = {
  user: objectOf<UserMessage>({ id: name, role: exactly('user'), content: contents, name }, 'name'),
  assistant: objectOf<AssistantMessage>(
    { id: name, role: exactly('assistant'), content: assistantBlocks, name, vendor: vendorFacts },
    'name',
    'vendor',
  ),
  tool: objectOf<ToolMessage>({
    id: name,
    role: exactly('tool'),
    content: listOf(toolResult, maxBlocks),
  }),
};

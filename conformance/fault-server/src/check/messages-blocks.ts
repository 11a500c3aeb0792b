import {
  also,
  boolean,
  type Fields,
  filledString,
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
  visibleString,
} from './shape.js';

/** Marks the end of a prefix that is to be cached. */
export const cacheControl: Shape = nullable(
  object({ type: oneOf('ephemeral') }, { ttl: oneOf('5m', '1h') }),
);

const cached = { cache_control: cacheControl };
const citations = { citations: nullable(record) };
const base64 = matching(/^[A-Za-z0-9+/]+=*$/, 'base64');
const webAddress = matching(/^https?:\/\//, 'an http(s) address');

const text = (citation: Shape): Shape =>
  object({ type: string, text: visibleString }, { ...cached, citations: nullable(citation) });

/** A block of text: with something to read in it, and no citations, which are the model's. */
export const textBlock: Shape = text(list(record, 0, 0));

const image = object(
  {
    type: string,
    source: tagged('type', {
      base64: object({
        type: string,
        media_type: oneOf('image/jpeg', 'image/png', 'image/gif', 'image/webp'),
        data: base64,
      }),
      url: object({ type: string, url: webAddress }),
      file: object({ type: string, file_id: filledString }),
    }),
  },
  { ...cached, transformations: nullable(record) },
);

const document = object(
  {
    type: string,
    source: tagged('type', {
      base64: object({ type: string, media_type: oneOf('application/pdf'), data: base64 }),
      text: object({ type: string, media_type: oneOf('text/plain'), data: filledString }),
      url: object({ type: string, url: webAddress }),
      content: object({ type: string, content: textOr(filledString, list(record, 1)) }),
      file: object({ type: string, file_id: filledString }),
    }),
  },
  { ...cached, ...citations, context: nullable(string), title: nullable(string) },
);

const searchResult = object(
  { type: string, source: string, title: string, content: list(textBlock, 1) },
  { ...cached, ...citations },
);

const toolId = matching(/^[a-zA-Z0-9_-]+$/);
const said: Fields = { text: textBlock, image, document, search_result: searchResult };

const isFilled = (content: unknown): boolean =>
  (typeof content === 'string' || Array.isArray(content)) && content.length > 0;

const isAllText = (content: unknown): boolean =>
  !Array.isArray(content) || content.every((part) => textBlock(part, nowhere).length === 0);

const nowhere = { path: '', allow: [] };

const toolResult = also(
  object(
    { type: string, tool_use_id: toolId },
    { ...cached, content: textOr(string, list(tagged('type', said))), is_error: boolean },
  ),
  rule(
    `content cannot be empty if 'is_error' is true.`,
    (block) => block['is_error'] !== true || isFilled(block['content']),
  ),
  rule(
    `all content must be type 'text' if 'is_error' is true.`,
    (block) => block['is_error'] !== true || isAllText(block['content']),
  ),
);

const toolCall = object(
  { type: string, id: toolId, name, input: record },
  { ...cached, caller: record },
);

/** What a user says, results of tools among it. */
const userBlock = tagged('type', { ...said, tool_result: toolResult, container_upload: record });

/** What the model has said. Its thinking is told from what others think by the signature. */
const assistantBlock = tagged('type', {
  text: text(list(record)),
  thinking: object({ type: string, thinking: string, signature: filledString }),
  redacted_thinking: object({ type: string, data: filledString }),
  tool_use: toolCall,
  server_tool_use: object(
    { type: string, id: toolId, name, input: record },
    { ...cached, caller: record },
  ),
  mcp_tool_use: record,
  mcp_tool_result: record,
  web_search_tool_result: record,
  web_fetch_tool_result: record,
  // A type that no client knows yet, but that the server sends.
  tomorrow: record,
  code_execution_tool_result: record,
  bash_code_execution_tool_result: record,
  text_editor_code_execution_tool_result: record,
  tool_search_tool_result: object({
    type: string,
    tool_use_id: toolId,
    content: tagged('type', {
      tool_search_tool_search_result: object({
        type: string,
        tool_references: list(object({ type: oneOf('tool_reference'), tool_name: name })),
      }),
      tool_search_tool_result_error: object(
        { type: string, error_code: string },
        { error_message: nullable(string) },
      ),
    }),
  }),
});

const message = (block: Shape): Shape =>
  object({ role: string, content: textOr(visibleString, list(block, 1)) });

/** One message of a conversation with Anthropic. */
export const messagesMessage: Shape = tagged('role', {
  user: message(userBlock),
  assistant: message(assistantBlock),
});

// A request as a command for a shell, in the format of OpenAI's chat completions, which most providers read.
import type { Exchange } from '../protocol.js';
import { withoutKeys } from '../secrets.js';
import { durationText } from './axis.js';
import { type Fields, fieldsOf, messagesIn, stringOf, textIn, toolCallsIn } from './read-event.js';
import { contentOfRequest, type ModelRequest, modelOf } from './requests.js';

/**
 * Returns a `curl` command that sends a request to `$BASE_URL/chat/completions` with `$API_KEY`. Events do not have the
 * body that the provider got: this is the same prompt in a common format. Media are named only.
 */
export const curlOf = (request: ModelRequest): string => {
  const body = withoutKeys(JSON.stringify(bodyOf(request), null, 2));
  return [
    'curl "$BASE_URL/chat/completions"',
    '-H "Authorization: Bearer $API_KEY"',
    "-H 'Content-Type: application/json'",
    `-d ${quoted(body)}`,
  ].join(' \\\n  ');
};

/** Returns a `curl` command that sends a request again as the provider got it, with `$API_KEY`. */
export const curlOfExchange = ({ url, headers, body }: Exchange): string =>
  [
    `curl ${withKey(url)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${withKey(`${name}: ${value}`)}`),
    `-d ${quoted(body)}`,
  ].join(' \\\n  ');

/** The responses of exchanges, in their order: the status, how long it took, and what came next. */
export const attemptsOf = (exchanges: readonly Exchange[]) =>
  exchanges.flatMap(({ at, response }, index) => {
    if (response === undefined) return [];
    const { status, body, omitted } = response;
    const next = exchanges[index + 1];
    const text = [
      status ?? 'No response',
      `after ${durationText(response.at - at)}`,
      ...(next === undefined
        ? []
        : [
            isRedirect(response.status)
              ? 'redirected'
              : `sent again ${durationText(next.at - response.at)} later`,
          ]),
    ];
    return [{ text: text.join(' · '), body, omitted }];
  });

/** The address of the last exchange, and which attempt it was: a redirect belongs to its attempt. */
export const wayOf = (exchanges: readonly Exchange[]): string => {
  const attempts = exchanges.filter(
    (_, index) => !isRedirect(exchanges[index - 1]?.response?.status),
  ).length;
  return `POST ${exchanges.at(-1)?.url ?? ''}${attempts > 1 ? ` · attempt ${attempts}` : ''}`;
};

/** Others change the method, and are not followed. */
const isRedirect = (status: number | undefined): boolean => status === 307 || status === 308;

/** A string into which the shell puts the key. */
const withKey = (text: string): string => quoted(text).replaceAll('[redacted]', `'"$API_KEY"'`);

/** A string that a POSIX shell does not read. */
const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

const bodyOf = (request: ModelRequest): object => {
  const { messages, options } = contentOfRequest(request);
  const { system, tools, toolChoice, temperature, maxTokens, stopSequences, outputSchema } =
    options;
  const declared = messagesIn(tools).map(declarationOf);
  return {
    model: modelOf(request) ?? '$MODEL',
    messages: [
      ...(stringOf(system) === '' ? [] : [{ role: 'system', content: system }]),
      ...messagesIn(messages).flatMap(messageOf),
    ],
    ...(declared.length > 0 && { tools: declared }),
    // JSON leaves out undefined fields.
    ...{ tool_choice: choiceOf(toolChoice), temperature, max_tokens: maxTokens },
    stop: stopSequences,
    ...(outputSchema !== undefined && {
      response_format: {
        type: 'json_schema',
        json_schema: { name: 'output', schema: outputSchema },
      },
    }),
  };
};

const choiceOf = (choice: unknown): unknown => {
  const { name } = fieldsOf(choice);
  return name === undefined ? choice : { type: 'function', function: { name } };
};

const declarationOf = ({ name, description, inputSchema }: Fields): object => ({
  type: 'function',
  function: { name, description, parameters: inputSchema },
});

const messageOf = (message: Fields): readonly object[] => {
  const { role, content } = message;
  if (role === 'tool')
    return messagesIn(content).map((result) => ({
      ...{ role: 'tool', tool_call_id: result['toolCallId'], content: textIn(result) },
    }));
  const calls = toolCallsIn(message).map(({ id, name, input }) => ({
    ...{
      id,
      type: 'function',
      function: { name, arguments: input === undefined ? '{}' : JSON.stringify(input) },
    },
  }));
  return [{ role, content: textIn(message), ...(calls.length > 0 && { tool_calls: calls }) }];
};

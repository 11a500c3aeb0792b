import {
  addTools,
  type Agent,
  type CallInfo,
  type Layer,
  MillraceError,
  suspend,
  type Tool,
  tool,
} from 'millrace';
import { isRecord } from 'millrace/values';
import { of } from 'rxjs';
import { fieldOf } from './inbound.js';

/** A tool that the client runs, from its request. */
export interface ClientTool {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of its arguments: an object. */
  readonly parameters: Readonly<Record<string, unknown>>;
}

export const maxClientTools = 128;

/** Reads tools with a name, a description and parameters. Returns the problem if they cannot be used. */
export const readClientTools = (
  declared: unknown,
  taken: ReadonlySet<string>,
): readonly ClientTool[] | string => {
  if (!Array.isArray(declared) || declared.length > maxClientTools) {
    return `'tools' must be a list of up to ${maxClientTools} tools.`;
  }
  const tools: ClientTool[] = [];
  const names = new Set<string>();
  for (const given of declared) {
    const name = fieldOf(given, 'name');
    const description = fieldOf(given, 'description');
    const parameters = fieldOf(given, 'parameters') ?? { type: 'object', properties: {} };
    if (typeof name !== 'string' || !/^[\w-]{1,64}$/u.test(name)) {
      return 'The name of a tool must be up to 64 letters, digits, _ and -.';
    }
    if (!isRecord(parameters) || parameters['type'] !== 'object') {
      return `The parameters of '${name}' must have the type object.`;
    }
    if (names.has(name)) return 'Two tools have the same name.';
    if (taken.has(name)) return `The server already has a tool '${name}'.`;
    names.add(name);
    const text = typeof description === 'string' ? description.trim() : '';
    tools.push({ name, description: text === '' ? name : text, parameters });
  }
  return tools;
};

/** The names of the tools of an agent, which no tool of a client may have. */
export const namesOf = (entries: Agent['tools']): readonly string[] =>
  entries.flatMap((entry) => ('tools' in entry ? namesOf(entry.tools) : [entry.name]));

/**
 * Adds the tools that a client has sent to its call. They are read from the metadata of the call, so a resumed one has
 * them, too. They suspend: their results come with a later request.
 */
export const clientTools = (
  name: string,
  toolsIn: (metadata: CallInfo['metadata']) => readonly ClientTool[],
): Layer => ({
  name,
  // The priority of `addTools`.
  priority: 54,
  call: (context) => (next) => (call) => {
    const tools = toolsIn(context.info.metadata);
    if (tools.length === 0) return next(call);
    const { names } = call.toolkit.current;
    const taken = tools.find((it) => names.includes(it.name))?.name;
    if (taken !== undefined) {
      throw new MillraceError('invalidRequest', `The server already has a tool '${taken}'.`, {
        status: 400,
        userMessage: `The server already has a tool '${taken}'.`,
      });
    }
    return addTools(...tools.map(suspending)).call?.(context)(next)(call) ?? next(call);
  },
});

const suspending = ({ name, description, parameters }: ClientTool): Tool =>
  tool({
    name,
    description,
    input: unchecked(parameters),
    idempotent: true,
    run: () => suspend(null, { from: 'client' }),
  });

/** Does not compile a schema from an untrusted client. The model receives it, and the client validates. */
export const unchecked = (jsonSchema: Readonly<Record<string, unknown>>) => ({
  jsonSchema,
  validation$: (value: unknown) =>
    of(
      isRecord(value)
        ? ({ valid: true, value, input: value } as const)
        : ({ valid: false, problems: ['it is not a JSON object'] } as const),
    ),
});

/** Adds to the instructions of an agent. */
export const withInstructions = <Call extends { readonly instructions: string | undefined }>(
  call: Call,
  added: string,
): Call => {
  const { instructions: own = '' } = call;
  return { ...call, instructions: own === '' ? added : `${own}\n\n${added}` };
};

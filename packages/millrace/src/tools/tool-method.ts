import { deferWork } from '../flow/eventual.js';
import { misuse } from '../values/errors.js';
import type { Given, Infer, InputSchema, OutputSchema } from '../values/schema.js';
import { emissions, type NoParameters, tool, type ToolDefinition } from './tool.js';
import { type ResultOf, resultsOf, type ToolReturn } from './tool-results.js';
import type { Tool, ToolContext } from './types.js';

/** The options of `tool()` without `run`. Default of `name`: the name of the method. */
export type ToolMethodOptions<Schema, Output = OutputSchema> = Omit<
  ToolDefinition<Schema, string, Output>,
  'name' | 'run'
> &
  Partial<Pick<ToolDefinition<Schema>, 'name'>>;

/**
 * Decorates a method as a tool for `toolsOf`. The schema is compiled once, with the class. A standard decorator: it
 * works without compiler flags, and not with `experimentalDecorators`.
 */
export const toolMethod =
  <
    const Schema extends InputSchema = NoParameters,
    const Output extends OutputSchema = OutputSchema,
  >(
    options: ToolMethodOptions<Schema, Output>,
  ) =>
  <This extends object>(
    _method: Method<This, Schema, Output>,
    decorated: ClassMethodDecoratorContext<This, Method<This, Schema, Output>>,
  ): void => {
    const { name = String(decorated.name) } = options;
    const shape = tool<Schema>({ ...options, name, run: () => undefined });
    const { toOutput$ } = resultsOf(name, options.output);
    decorated.addInitializer(function () {
      const own: Tool = {
        ...shape,
        run$: (input, context) =>
          deferWork(() => {
            // Read at each call: a subclass may override it.
            const method = decorated.access.get(this);
            // The validator guarantees the schema's type; no type guard can express that.
            // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
            const returned = method.call(this, input as Infer<Schema>, context);
            return emissions(returned, context.demand, toOutput$);
          }),
      };
      // A subclass may decorate its own version of the method, which comes last.
      const tools = toolsOfInstance.get(this) ?? new Map<string | symbol, Tool>();
      toolsOfInstance.set(this, tools.set(decorated.name, own));
    });
  };

type Method<This, Schema, Output> = (
  this: This,
  input: Infer<Schema>,
  context: ToolContext,
) => ToolReturn<ResultOf<Given<Output>>>;

const toolsOfInstance = new WeakMap<object, Map<string | symbol, Tool>>();

/** Returns the tools of an object's `toolMethod` methods, bound to it. Throws `config` if it has no such method. */
export const toolsOf = (instance: object): readonly Tool[] => {
  const tools = toolsOfInstance.get(instance);
  if (tools !== undefined) return [...tools.values()];
  throw misuse(
    'toolsOf() takes an instance of a class with methods that are decorated with @toolMethod({ description, input }).',
  );
};

import { made$ } from '../flow/contained.js';
import { misuse } from '../values/errors.js';
import type { Infer, InputSchema } from '../values/schema.js';
import { emissions, type NoParameters, tool, type ToolDefinition } from './tool.js';

import type { Tool, ToolContext } from './types.js';

/** What a method is made a tool with: all that `tool()` takes but the code. The name is the method's, where none is given. */
export type ToolMethodOptions<Schema> = Omit<ToolDefinition<Schema>, 'name' | 'run'> &
  Partial<Pick<ToolDefinition<Schema>, 'name'>>;

/** Decorates a method, so that `toolsOf` makes a tool of it. The schema is compiled once, with the class. It is a standard decorator: TypeScript needs no flag for it, and does not take it with `experimentalDecorators`. */
export const toolMethod =
  <const Schema extends InputSchema = NoParameters>(options: ToolMethodOptions<Schema>) =>
  <This extends object>(
    _method: (this: This, input: Infer<Schema>, context: ToolContext) => unknown,
    decorated: ClassMethodDecoratorContext<
      This,
      (this: This, input: Infer<Schema>, context: ToolContext) => unknown
    >,
  ): void => {
    const { name = String(decorated.name) } = options;
    const shape = tool<Schema>({ ...options, name, run: () => undefined });
    decorated.addInitializer(function () {
      const own: Tool = {
        ...shape,
        run$: (input, context) =>
          made$(() => {
            // Read anew, so that a subclass may override it.
            const method = decorated.access.get(this);
            // What the validator has passed is of the schema's type, which no guard can say.
            // eslint-disable-next-line @typescript-eslint/consistent-type-assertions
            return emissions(method.call(this, input as Infer<Schema>, context), context.demand);
          }),
      };
      // A subclass may decorate its own version of the method: it is the last to come.
      const tools = toolsOfInstance.get(this) ?? new Map<string | symbol, Tool>();
      toolsOfInstance.set(this, tools.set(decorated.name, own));
    });
  };

const toolsOfInstance = new WeakMap<object, Map<string | symbol, Tool>>();

/** The tools that an object has by `toolMethod`, each bound to it. Throws a `config` error where it has none. */
export const toolsOf = (instance: object): readonly Tool[] => {
  const tools = toolsOfInstance.get(instance);
  if (tools !== undefined) return [...tools.values()];
  throw misuse(
    'toolsOf() takes an instance of a class with methods that are decorated with @toolMethod({ description, input }).',
  );
};

import type { ModelRequest, ToolDeclaration } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { type JsonRecord, toolNames, type ToolNames } from '@millrace/wire';
import type { MediaTaker } from './media-parts.js';
import type { AiSdkModelOptions } from './options.js';
import { toPrompt } from './prompt.js';
import type { AiSdkCallOptions, AiSdkTool, ProviderOptions } from './provider-types.js';
import { toolIdsOf } from './tool-ids.js';

/** The names of the tools of a request at the vendor, and back. */
export const namesOf = (
  { tools = [] }: Pick<ModelRequest, 'tools'>,
  { builtInTools = {} }: Pick<AiSdkModelOptions, 'builtInTools'>,
): ToolNames => {
  const names = toolNames(
    tools.map(({ name }) => name),
    [...Object.keys(builtInTools), ...inherited],
  );
  return {
    fromWire: (name) => names.fromWire(name),
    toWire: (name) => {
      const wire = names.toWire(name);
      // Only a model that invents tools calls one of these.
      return inherited.includes(wire) ? `tool_${wire}` : wire;
    },
  };
};

/** Names that every object has. Providers look names of tools up in plain objects. */
const inherited: readonly string[] = Object.getOwnPropertyNames(Object.prototype);

/** Maps a request to the options of a call. */
export const toCallOptions = (
  request: ModelRequest,
  model: MediaTaker,
  names: ToolNames,
  { settings = {}, builtInTools = {} }: Pick<AiSdkModelOptions, 'settings' | 'builtInTools'>,
): AiSdkCallOptions => {
  const { tools = [], toolChoice, temperature, maxTokens, stopSequences, outputSchema } = request;
  const toolName = (name: string): string => names.toWire(name);
  const all = [
    ...tools.map((it) => toFunctionTool(it, toolName)),
    ...Object.entries(builtInTools).map(toProviderTool),
  ];
  return {
    ...defined({
      ...settings,
      providerOptions: withContainer(model.provider, request, settings.providerOptions),
    }),
    // Packages drop errors in places they do not know, and report no events while a model thinks.
    includeRawChunks: true,
    prompt: toPrompt(request, model, { toolName, toolId: toolIdsOf(model.provider) }),
    ...defined({
      temperature,
      maxOutputTokens: maxTokens,
      stopSequences: stopSequences && [...stopSequences],
      tools: all.length === 0 ? undefined : all,
      toolChoice: toolChoice && all.length > 0 ? toToolChoice(toolChoice, toolName) : undefined,
      responseFormat: outputSchema && { type: 'json', name: 'answer', schema: outputSchema },
    }),
  };
};

/**
 * The options of the provider for a request with results of tools. Code of Anthropic that called these tools waits in a container, and
 * a request that does not name it is rejected. Options of your own take precedence.
 */
const withContainer = (
  provider: string,
  { messages }: Pick<ModelRequest, 'messages'>,
  own: ProviderOptions | undefined,
): ProviderOptions | undefined => {
  if (messages.at(-1)?.role !== 'tool') return own;
  const asking = messages.findLast((it) => it.role === 'assistant')?.vendor;
  const id = asking?.name === provider ? asking.container?.id : undefined;
  return id === undefined
    ? own
    : { ...own, anthropic: { container: { id }, ...own?.['anthropic'] } };
};

const toFunctionTool = (
  { name, description, inputSchema, vendorOptions }: ToolDeclaration,
  toolName: (name: string) => string,
): JsonRecord => ({
  ...{ type: 'function', name: toolName(name), description, inputSchema },
  ...(vendorOptions === undefined ? {} : { providerOptions: vendorOptions }),
});

const toProviderTool = ([name, { id, args }]: readonly [string, AiSdkTool]): JsonRecord => ({
  ...{ type: 'provider', id, name },
  args: isRecord(args) ? args : {},
});

const toToolChoice = (
  choice: NonNullable<ModelRequest['toolChoice']>,
  toolName: (name: string) => string,
): JsonRecord =>
  typeof choice === 'string' ? { type: choice } : { type: 'tool', toolName: toolName(choice.name) };

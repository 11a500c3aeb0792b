import type { ModelRequest, ToolDeclaration } from 'millrace';
import { defined, isRecord } from 'millrace/values';
import { type JsonRecord, toolNames, type ToolNames, toWireId } from '@millrace/wire';
import type { MediaTaker } from './media-parts.js';
import type { AiSdkModelOptions } from './options.js';
import { toPrompt } from './prompt.js';
import type { AiSdkCallOptions, AiSdkTool } from './provider-types.js';

/** The names of the tools of a request at the vendor, and back. */
export const namesOf = (
  { tools = [] }: Pick<ModelRequest, 'tools'>,
  { builtInTools = {} }: Pick<AiSdkModelOptions, 'builtInTools'>,
): ToolNames =>
  toolNames(
    tools.map(({ name }) => name),
    // Providers look names up in plain objects.
    [...Object.keys(builtInTools), '__proto__'],
  );

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
    ...defined(settings),
    prompt: toPrompt(request, model, { toolName, toolId: toWireId }),
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

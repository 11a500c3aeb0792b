import {
  type Message,
  type Model,
  type ModelRequest,
  type RequestOptions,
  type ResultSource,
  type ToolCallBlock,
  toolCallsOf,
} from 'millrace';
import { answerToolIf, type Reader, toolNames, vendorModel, type WireNames } from '@millrace/wire';
import { accessOf, serverOf } from './access.js';
import { createRequests } from './client.js';
import type { EndpointOptions } from './options.js';
import type { Profile, ToolIdRule } from './profile.js';
import { textInputOf } from './custom-tools.js';
import { toolIds } from './tool-ids.js';

export interface Target {
  readonly profile: Profile;
  readonly model: string;
}

export type WriteRequest = (request: ModelRequest, naming: WireNames) => string;

export interface ReaderSource {
  /** The name of the vendor in encoded signatures. */
  readonly vendor: string;
  /** The name of the server in errors. */
  readonly server: string;
  /** Maps the vendor's name of a tool to the original one. */
  readonly toolName: (wireName: string) => string;
  /** Returns the argument that the input of a custom tool becomes, by the vendor's name of the tool. Default: `input`. */
  readonly textInput?: ((wireName: string) => string) | undefined;
  /** Who decides on calls of hosted MCP tools. Default: `client`. */
  readonly mcpApprovals?: ResultSource | undefined;
}

/** One of the APIs that a vendor may support. */
export interface Wire {
  readonly unsupported: readonly (keyof RequestOptions)[];
  readonly toolIds?: ToolIdRule | undefined;
  readonly write: WriteRequest;
  /** The path of the API below the base URL. */
  readonly path: string;
  readonly reader: (source: ReaderSource) => Reader;
}

/** The latest call with an ID: new results are at the end of a conversation. */
const callOf = (messages: readonly Message[], id: string): ToolCallBlock | undefined => {
  for (let at = messages.length - 1; at >= 0; at -= 1) {
    const message = messages[at];
    const found =
      message?.role === 'assistant' ? toolCallsOf(message).find((it) => it.id === id) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Creates a model that uses one API. Each request has its own reader and names. */
export const wireModel = (
  profile: Profile,
  model: string,
  options: EndpointOptions,
  wire: Wire,
): Model => {
  const access = accessOf(profile, options);
  const requests = createRequests(profile, access, wire.path, options);
  const { name: vendor, nativeOutput } = profile;
  const { media } = options;
  const target = { profile, model, path: wire.path };
  const server = serverOf(profile, access.baseURL);
  const vendorBased = vendorModel(
    {
      name: model,
      unsupported: wire.unsupported,
      exchange: (request, context) => {
        const names = toolNames((request.tools ?? []).map(({ name }) => name));
        const body = wire.write(media?.toWire(request, target, context) ?? request, {
          toolName: (name) => names.toWire(name),
          toolId: toolIds(request.messages, wire.toolIds),
          callOf: (id) => callOf(request.messages, id),
        });
        const reader = withoutMisses(
          wire.reader({
            vendor,
            server,
            toolName: (name) => names.fromWire(name),
            textInput: (name) => textInputOf(request.tools, names.fromWire(name)),
          }),
        );
        return {
          vendor: server,
          ...requests(body),
          ...(media?.fromWire(reader, { vendor, server, options }) ?? reader),
        };
      },
    },
    options,
  );
  // In a request with tools, a schema would keep the models of such a vendor from calling them.
  return nativeOutput === 'withoutTools'
    ? answerToolIf(vendorBased, (_schema, { tools = [] }) => tools.length > 0)
    : vendorBased;
};

/** An event that is no object is ignored, but for a list, which may have content: the answer would miss it. */
const withoutMisses = (reader: Reader): Reader => ({
  ...reader,
  read: (event) => {
    const { data } = event;
    if (Array.isArray(data) && data.length > 0) {
      throw new TypeError('This event is a list, and not an object.');
    }
    return reader.read(event);
  },
});

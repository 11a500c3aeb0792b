import type { Model, ModelRequest, RequestOptions } from '@millrace/core';
import {
  answerToolIf,
  type WireNames,
  type Reader,
  type SendOptions,
  toolNames,
  vendorModel,
  withKey,
} from '@millrace/wire';
import type { OpenAI } from 'openai';
import { accessOf, serverOf } from './access.js';
import { createClient } from './client.js';
import type { EndpointOptions } from './options.js';
import type { Profile, ToolIdRule } from './profile.js';
import { toolIds } from './tool-ids.js';

/** Whom requests are written for. */
export interface Target {
  readonly profile: Profile;
  readonly model: string;
}

/** Writes the body of a request, as JSON. */
export type WriteRequest = (request: ModelRequest, naming: WireNames) => string;

/** From whom an answer is read. */
export interface ReaderSource {
  /** The vendor, under whose name is kept what it wants back. */
  readonly vendor: string;
  /** What errors call the other side. */
  readonly server: string;
  /** The name that we gave a tool, from the one that the vendor knows. */
  readonly toolName: (wireName: string) => string;
}

/** One of the wires that a vendor may speak. */
export interface Wire {
  readonly unsupported: readonly (keyof RequestOptions)[];
  readonly toolIds?: ToolIdRule | undefined;
  readonly write: WriteRequest;
  readonly send: (sdk: OpenAI, body: string, options: SendOptions) => Promise<Response>;
  readonly reader: (source: ReaderSource) => Reader;
}

/** Makes a model that is asked over a wire. Each request has a reader and names of its own. */
export const wireModel = (
  profile: Profile,
  model: string,
  options: EndpointOptions,
  wire: Wire,
): Model => {
  const access = accessOf(profile, options);
  const client = createClient(profile, access, options);
  const { name: vendor, nativeOutput } = profile;
  const server = serverOf(profile, access.baseUrl);
  const vendorBased = vendorModel(
    {
      name: model,
      unsupported: wire.unsupported,
      exchange: (request) => {
        const names = toolNames((request.tools ?? []).map(({ name }) => name));
        const body = wire.write(request, {
          toolName: (name) => names.toWire(name),
          toolId: toolIds(request.messages, wire.toolIds),
        });
        return {
          vendor: server,
          ...withKey(access, async (sending) => wire.send(await client(), body, sending)),
          ...wire.reader({ vendor, server, toolName: (name) => names.fromWire(name) }),
        };
      },
    },
    options,
  );
  // While it has tools to ask for, a schema would keep such a vendor's model from asking.
  return nativeOutput === 'withoutTools'
    ? answerToolIf(vendorBased, (_schema, { tools = [] }) => tools.length > 0)
    : vendorBased;
};

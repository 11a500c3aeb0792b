import type { Model, ModelRequest, RequestOptions } from '@millrace/core';
import {
  answerToolWhere,
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

/** Whom a request is written for. */
export interface Target {
  readonly profile: Profile;
  readonly model: string;
  /** The name of a tool, in a form that the vendor takes. */
  readonly toolName: (name: string) => string;
  /** The id of a tool use, in a form that the vendor takes. */
  readonly toolId: (id: string) => string;
}

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
export interface Wire<Body> {
  readonly unsupported: readonly (keyof RequestOptions)[];
  readonly toolIds?: ToolIdRule | undefined;
  readonly write: (request: ModelRequest, target: Target) => Body;
  readonly send: (sdk: OpenAI, body: Body, options: SendOptions) => Promise<Response>;
  readonly reader: (source: ReaderSource) => Reader;
}

/** Makes a model that is asked over a wire. Each request has a reader and names of its own. */
export const wireModel = <Body>(
  profile: Profile,
  model: string,
  options: EndpointOptions,
  wire: Wire<Body>,
): Model => {
  const access = accessOf(profile, options);
  const client = createClient(profile, access, options);
  const { name: vendor, nativeOutput } = profile;
  const server = serverOf(profile, access.baseUrl);
  const asked = vendorModel(
    {
      name: model,
      unsupported: wire.unsupported,
      exchange: (request) => {
        const names = toolNames((request.tools ?? []).map(({ name }) => name));
        const toolName = (name: string): string => names.toWire(name);
        const toolId = toolIds(request.messages, wire.toolIds);
        const body = wire.write(request, { profile, model, toolName, toolId });
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
    ? answerToolWhere(asked, (_schema, { tools = [] }) => tools.length > 0)
    : asked;
};

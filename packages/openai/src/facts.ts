import type { ModelChunk, VendorFacts } from 'millrace';
import { at, countAt, type JsonRecord, listAt, textAt } from '@millrace/wire';
import { fieldsOf, textIn } from './fields.js';

type Facts = { -readonly [Field in keyof VendorFacts]: VendorFacts[Field] };

/** The facts of a response, at its end. */
export const responsesFacts = (response: unknown, vendor: string): readonly ModelChunk[] => {
  const facts = commonFacts(fieldsOf(response));
  addReasoning(facts, at(response, 'usage', 'output_tokens_details'));
  const reason = textAt(response, 'incomplete_details', 'reason') || textAt(response, 'status');
  if (reason !== '') facts.stopReason = reason;
  const uses: Record<string, number> = {};
  for (const item of listAt(response, 'output')) {
    const name = hostedTool.exec(textAt(item, 'type'))?.[1];
    if (name !== undefined) uses[name] = (uses[name] ?? 0) + 1;
  }
  if (Object.keys(uses).length > 0) facts.toolUses = uses;
  return factsChunks(facts, vendor);
};

/** Items that are uses of tools which the vendor runs. */
const hostedTool =
  /^(code_interpreter|file_search|image_generation|mcp|tool_search|web_search)_call$/u;

/** The facts in one event of a chat completion. */
export const chatFacts = (
  event: JsonRecord,
  choice: JsonRecord,
  usage: unknown,
  vendor: string,
): readonly ModelChunk[] => {
  const facts = commonFacts(event);
  const reason = textIn(choice['native_finish_reason']) || textIn(choice['finish_reason']);
  if (reason !== '') facts.stopReason = reason;
  addReasoning(facts, at(usage, 'completion_tokens_details'));
  // OpenRouter and Perplexity count searches in the usage.
  const searches =
    countAt(usage, 'num_search_queries') ??
    countAt(usage, 'server_tool_use', 'web_search_requests');
  if (searches !== undefined) facts.toolUses = { web_search: searches };
  return factsChunks(facts, vendor);
};

const commonFacts = ({ id, model, service_tier: tier }: JsonRecord): Facts => {
  const facts: Facts = {};
  if (textIn(id) !== '') facts.id = textIn(id);
  if (textIn(model) !== '') facts.model = textIn(model);
  if (textIn(tier) !== '') facts.serviceTier = textIn(tier);
  return facts;
};

const addReasoning = (facts: Facts, details: unknown): void => {
  const tokens = countAt(details, 'reasoning_tokens');
  if (tokens !== undefined) facts.reasoningTokens = tokens;
};

const factsChunks = (facts: Facts, name: string): readonly ModelChunk[] =>
  Object.keys(facts).length === 0 ? [] : [{ type: 'facts', facts: { name, ...facts } }];

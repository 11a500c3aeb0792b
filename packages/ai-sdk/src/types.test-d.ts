import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { Tool as AiTool } from '@ai-sdk/provider-utils';
import { expectTypeOf } from 'expect-type';
import type { Model, Tool } from 'millrace';
import { aiSdkModel, fromAiSdkTools } from './index.js';

declare const model: LanguageModelV3;
declare const tools: Record<string, AiTool>;

expectTypeOf(aiSdkModel(model)).toEqualTypeOf<Model>();
expectTypeOf(fromAiSdkTools(tools)).toEqualTypeOf<readonly Tool[]>();
aiSdkModel(model, { builtInTools: tools, settings: { topP: 0.9 } });

// @ts-expect-error A name is no model: import that of its provider.
aiSdkModel('gpt-5-mini');
// @ts-expect-error An unknown option.
aiSdkModel(model, { maxRetries: 2 });

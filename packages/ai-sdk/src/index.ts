export { aiSdkModel } from './ai-sdk-model.js';
export { fromAiSdkTools, type FromAiSdkToolsOptions } from './from-ai-sdk-tools.js';
export type { AiSdkCallSettings, AiSdkModelOptions } from './options.js';
export type {
  AiSdkCallOptions,
  AiSdkLanguageModel,
  AiSdkTool,
  ProviderOptions,
  SupportedUrls,
} from './provider-types.js';

// Media that models and services generate: images and recordings of answers, and tools that speak, listen and draw.
export { anyMedia } from './any-media.js';
export {
  imageGenerator,
  type ImageGeneratorOptions,
  type MediaToolOptions,
  textToSpeech,
  type TextToSpeechOptions,
  transcription,
  type TranscriptionOptions,
} from './media-tools.js';

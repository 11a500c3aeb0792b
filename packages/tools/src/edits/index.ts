// Inputs and edits of tools that change files, for file systems of your own. Portable.
export {
  editedText,
  editFileInput,
  filePath,
  type TextEdit,
  writeFileInput,
} from './text-edits.js';

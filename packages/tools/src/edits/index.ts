// What tools that change files share, for file systems of your own. Portable.
export {
  editedText,
  editFileInput,
  filePath,
  type TextEdit,
  writeFileInput,
} from './text-edits.js';

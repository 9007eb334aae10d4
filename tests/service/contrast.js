// Text on the page whose contrast with what is behind it is below WCAG AA: 4.5, or 3 where it is large.
(() => {
  const colour = (text) => {
    const numbers = text.match(/[\d.]+/g).map(Number);
    const unit = text.startsWith('color(') ? 255 : 1; // what color-mix() computes to counts from 0 to 1
    return [...numbers.slice(0, 3).map((n) => n * unit), numbers[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (
    element,
  ) => (element
    ? over(colour(getComputedStyle(element).backgroundColor), behind(element.parentElement))
    : [255, 255, 255]);
  const found = [];
  let n = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !element.checkVisibility() || element.closest(':disabled')) continue;
    const style = getComputedStyle(element);
    const drawn = element.closest('svg');
    const ground = behind(drawn ? drawn.parentElement : element);
    const [high, low] = [light(over(colour(drawn ? style.fill : style.color), ground)), light(ground)].sort((a, b) =>
      b - a
    );
    const size = parseFloat(style.fontSize);
    const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
    n += 1;
    if ((high + 0.05) / (low + 0.05) < least) {
      found.push(`${element.tagName} ${text.slice(0, 30)}: ${((high + 0.05) / (low + 0.05)).toFixed(2)}`);
    }
  }
  return { checked: n, found };
});

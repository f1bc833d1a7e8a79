"""What a notebook's page draws: one widget, its parts, and the ES modules that the page asks for by message.

view        the widget, which holds no state but a digest; its parts: text, fields, buttons and groups of them
loader.js   all of the widget that a saved notebook can hold: asks for the other modules, once for each page
dom.js      the only place that makes elements: a stranger's text becomes text nodes, values and attributes alone
link.js     messages to Python, each one heard or said to wait
form.js     draws forms, fields and buttons, and says what is wrong with a field to screen readers, too
lines.js    draws a segment's conditions, one below the other, beside them their count, their JSON and what copies it
line.js     one condition: its words, and its fields where it is edited
picker.js   a text input with what fits below it
numbers.js  numbers as people read them, and what is typed as digits
histogram.js  how values are spread: bins by the data, bars that are pressed and brushed over
source.js   a table that is in the page whole: sorted, filtered and summed up exactly
table.js    a table over a source: the rows and columns in sight
chart.js    a chart's picture, whose marks are buttons
page.js     a page from disk, without Python
app.js      the kinds of parts; draws a widget, then hides its snapshot
markup.css  the looks of a form's frame and of Python's HTML, which each snapshot has inside
style.css   the looks of the other parts
"""

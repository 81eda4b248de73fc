<?php
function deep($n) { if ($n == 0) throw new Exception("deep"); return deep($n - 1); }
for ($i = 0, $caught = 0; $i < 2000; $i++) {
    try { deep($i % 50); } catch (Exception $e) { $caught += strlen($e->getMessage()); }
}
echo $caught, " ", md5(json_encode(range(1, 5000)));
